// Counts the resources of a process that plugins tend to leak.
#pragma once

#include <cstdint>
#include <string>

namespace pw::nic::check {

struct Counts {
  uint64_t descriptors = 0, threads = 0, mappings = 0, heap_bytes = 0;
};

Counts count_all();

/// The threads of this process that are neither the main thread nor the tests' own, as far as they let one of
/// the signals of programs in: the name of the first such signal; and how many there are.
struct PluginThreads {
  uint64_t count = 0;
  std::string lets_in;  ///< empty: none
};
PluginThreads plugin_threads();

}  // namespace pw::nic::check
