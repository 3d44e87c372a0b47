// The conformance tests of a NIC plugin: whether it does what peerway/nic.h requires and keeps the ordering
// guarantees that it states. `peerway nic-check` runs them.
//
// The process that calls check() never loads the plugin. It forks a near end, which runs the tests, and
// several far ends, whose memory is the target (nic/check/stand.h). A test that fails, crashes or hangs ends
// its processes, and the tests that follow get fresh ones: no test sees what another left behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pw::nic::check {

enum class Outcome : uint8_t {
  ok,
  broken,
  inconclusive,  ///< the test could not be exercised: nothing is known
  absent,        ///< the plugin lacks what this test is about
};

struct Verdict {
  std::string test;
  Outcome outcome;
  std::string evidence;  ///< how often it was exercised; or the evidence and what to do
};

struct Options {
  std::string plugin;         ///< a file
  std::string configuration;  ///< options for the plugin
  uint64_t seed = 1;
  double effort = 1;              ///< tests under load take this many times their usual time
  double patience_s = 2;          ///< CPU time of a polling thread after which an event counts as missing
  std::vector<std::string> only;  ///< names of tests; empty: all
};

/// Returns the time in seconds that the tests under load take together at effort 1.
double usual_seconds();
/// Returns the names of all tests, in order.
std::vector<std::string> test_names();

/// Runs the tests; calls `tell` with each verdict as it is reached. Throws Error if the plugin cannot be
/// loaded, or a name is not the name of a test.
void check(const Options& options, const std::function<void(const Verdict&)>& tell);

}  // namespace pw::nic::check
