#include "trace/operation.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>

#include "base/config.h"

namespace pw::trace {
namespace {

/// Settings with which `peerway trace` controls the recorder, and a user limits it.
constexpr ConfigEntry settings[] = {
    {"trace_dir", "path", "",
     "Where each thread records its operations; set by peerway trace for the ranks. Empty: nothing is "
     "recorded."},
    {"trace_memory", "path", "",
     "A folder in this host's memory, in which threads record while the program runs, if half of it or "
     "4 GiB stay free; set by peerway trace. Empty, or not there: they record in trace_dir."},
    {"trace_level", "choice:off|counters|profile|full", "full",
     "counters: sums for each operation; profile: also by path, peer and size; full: each operation."},
    {"trace_cupti", "path", "",
     "The CUPTI library, by which kernels and copies of GPUs are recorded. Empty: libcupti.so of the "
     "system."},
    {"trace_region", "text", "", "The only regions of programs within which is recorded. Empty: all is."},
    {"trace_ranks", "text", "", "The only ranks that record, separated by commas. Empty: all."},
    {"trace_events", "count", "262144", "How many of its last events a thread keeps, 32 bytes each."},
};

const bool is_declared = (declare_settings("trace", settings), true);

}  // namespace

// The recorder itself reads the environment, because programs and the wrappers of MPI record without this
// library. This checks the settings first, because the settings' table refuses values that the recorder would
// misread.
void begin() {
  if (config("trace_dir").empty()) return;
  config_number("trace_events");
  pw_trace_attach();
  writer();  // now, while nothing is measured, because making a ring takes a few milliseconds
}

// Sets the rank in one ring of the process, which begin() has made; that is enough.
void is_rank(int rank) {
  if (pw_trace_mine != nullptr && pw_trace_mine->ring->rank < 0) pw_trace_mine->ring->rank = rank;
}

void describe_path(std::string_view name, bool completes_at_start) {
  if (pw_trace_mine == nullptr || !completes_at_start) return;
  const unsigned number = pw_trace_name(pw_trace_mine, name.data(), name.size());
  if (number != 0) pw_trace_mine->ring->at_start[number / 8] |= static_cast<uint8_t>(1u << number % 8);
}

namespace {

// A process may contain this library and UCX's transport over a NIC; each has its own recorder.
const char* source() {
  static const char* const name = [] {
    Dl_info of{};
    const bool known = dladdr(reinterpret_cast<void*>(&source), &of) != 0 && of.dli_fname != nullptr;
    return known && std::strstr(of.dli_fname, "peerway_uct") != nullptr ? "uct" : "core";
  }();
  return name;
}

}  // namespace

unsigned site_of(pw_trace_writer* writer) {
  if (writer->site == 0 && writer->returns_to != nullptr)
    writer->site = pw_trace_place(writer, writer->returns_to, "/libpeerway");
  return writer->site;
}

pw_trace_writer* open_writer() { return pw_trace_open(source()); }

Operation::Operation(std::string_view name, pw_trace_kind kind) : writer_(writer()), sends_(false) {
  if (writer_ == nullptr) return;
  pw_trace_fill(&event_, kind, pw_trace_name(writer_, name.data(), name.size()), 0, -1, -1);
  if (kind != PW_TRACE_REGION) place();
  pw_trace_begin(writer_, &event_);
  pw_trace_prepare_next(writer_, pw_trace_word_of(&event_, 0));
}

ProgramRegion::ProgramRegion(std::string_view name) {
  pw_trace_attach();  // may be called before the program's first context
  counts_ = pw_trace_counts(name.data(), name.size()) != 0;
  if (counts_) pw_trace_region_begins();
  if (recording()) operation_.emplace(name, PW_TRACE_REGION);
}

ProgramRegion::~ProgramRegion() { end(); }

void ProgramRegion::end() {
  if (std::exchange(counts_, false)) pw_trace_region_ends();
  operation_.reset();
}

void Operation::since(uint64_t ticks) {
  if (writer_ != nullptr && ticks != 0) event_.begin = ticks;
}

void Operation::of(uint64_t bytes, int32_t tag) {
  event_.bytes = bytes & ((uint64_t{1} << 44) - 1);
  event_.tag = tag;
}

uint64_t now() {
  const pw_trace_writer* mine = writer();
  return mine != nullptr ? pw_trace_now(mine) : 0;
}

void add(const EarlierWork& work) {
  pw_trace_writer* mine = writer();
  if (mine == nullptr || work.begin == 0) return;
  constexpr uint64_t kMost = (uint64_t{1} << 44) - 1;
  pw_trace_event event{};
  event.kind = work.kind & 0x3ff;
  event.name = pw_trace_name(mine, work.name.data(), work.name.size()) & 0x3ff;
  if (!work.where.empty()) event.where = pw_trace_name(mine, work.where.data(), work.where.size()) & 0x3ff;
  event.begin = work.begin;
  event.duration = (pw_trace_now(mine) - work.begin) & kMost;
  event.bytes = work.bytes & kMost;
  event.peer = work.peer;
  event.tag = work.tag;
  pw_trace_add(mine, &event);
}

}  // namespace pw::trace
