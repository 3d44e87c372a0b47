// Counts the resources of a process that plugins tend to leak.
#pragma once

#include <cstdint>
#include <string>

namespace pw::nic::check {

struct Counts {
  uint64_t descriptors = 0, threads = 0, mappings = 0, heap_bytes = 0;
};

Counts count_all();

/// Counts the threads of this process other than the main thread and the tests' own. If some thread does not
/// block one of the signals of programs, `lets_in` names the first such signal.
struct PluginThreads {
  uint64_t count = 0;
  std::string lets_in;  ///< empty: all threads block them
};
PluginThreads plugin_threads();

}  // namespace pw::nic::check
