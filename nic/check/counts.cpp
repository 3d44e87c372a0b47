#include "nic/check/counts.h"

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/format.h"
#include "nic/check/deadline.h"

namespace pw::nic::check {
namespace {

template <typename Each>
void for_each_entry(const char* folder, Each&& each) {
  DIR* open = opendir(folder);
  if (open == nullptr) return;
  while (const dirent* entry = readdir(open))
    if (entry->d_name[0] != '.') each(entry->d_name);
  closedir(open);
}

uint64_t entries_of(const char* folder) {
  uint64_t count = 0;
  for_each_entry(folder, [&](const char*) { ++count; });
  return count;
}

uint64_t blocked_signals(const std::string& thread) {
  std::ifstream status(format("/proc/self/task/{}/status", thread));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:")) return std::strtoull(line.c_str() + std::strlen("SigBlk:"), nullptr, 16);
  return ~uint64_t{0};  // the thread has just ended
}

}  // namespace

Counts count_all() {
  Counts counts;
  counts.descriptors = entries_of("/proc/self/fd");
  counts.threads = entries_of("/proc/self/task");
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++counts.mappings;
  counts.heap_bytes = mallinfo2().uordblks + mallinfo2().hblkhd;
  return counts;
}

PluginThreads plugin_threads() {
  constexpr std::pair<int, const char*> kOfPrograms[] = {
      {SIGINT, "SIGINT"},   {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"},  {SIGCHLD, "SIGCHLD"},
      {SIGALRM, "SIGALRM"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}};
  PluginThreads threads;
  for_each_entry("/proc/self/task", [&](const char* name) {
    const int thread = std::atoi(name);
    if (thread == getpid() || thread == Watchdog::thread()) return;
    ++threads.count;
    const uint64_t blocked = blocked_signals(name);
    for (const auto& [number, text] : kOfPrograms)
      if ((blocked >> (number - 1) & 1) == 0 && threads.lets_in.empty()) threads.lets_in = text;
  });
  return threads;
}

}  // namespace pw::nic::check
