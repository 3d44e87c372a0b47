// The conformance tests of a NIC plugin: whether it does what peerway/nic.h asks and keeps the ordering
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
  inconclusive,  ///< it could not be exercised: nothing is known
  absent,        ///< the plugin does not have what this test is about
};

struct Verdict {
  std::string test;
  Outcome outcome;
  std::string evidence;  ///< how often it was exercised; or the evidence and what to do
};

struct Options {
  std::string plugin;         ///< a file
  std::string configuration;  ///< the plugin's own text
  uint64_t seed = 1;
  double effort = 1;     ///< tests under load take that many times their usual time
  double timeout_s = 2;  ///< CPU time of a polling thread after which something will not come any more
  std::vector<std::string> only;  ///< names of tests; empty: all
};

/// How long the tests under load take together at effort 1, in seconds.
double usual_seconds();
/// The names of all tests, in their order.
std::vector<std::string> test_names();

/// Runs the tests; `tell` is called with each verdict as it is reached. Throws Error when the plugin cannot
/// be loaded, or a name is not one of a test.
void check(const Options& options, const std::function<void(const Verdict&)>& tell);

}  // namespace pw::nic::check
