#include "trace/operation.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>

#include "base/setting.h"

namespace pw::settings {

// The recorder itself reads these variables from the environment, because programs and MPI's calls record
// without this library. They are declared here so that what the recorder would misread is refused.
const PathSetting trace_dir{
    "trace_dir", "",
    "Where each thread records its operations; set by peerway trace for the ranks. Empty: nothing is "
    "recorded."};
const PathSetting trace_memory{
    "trace_memory", "",
    "A folder in this host's memory, in which threads record while the program runs, if half of it or "
    "4 GiB stay free; set by peerway trace. Empty, or not there: they record in trace_dir."};
enum class TraceLevel : uint8_t { off, counters, profile, full };
const ChoiceSetting<TraceLevel> trace_level{
    "trace_level", "off|counters|profile|full", "full",
    "counters: sums for each operation; profile: also by path, peer and size; full: each operation."};
const PathSetting trace_cupti{
    "trace_cupti", "",
    "The CUPTI library, by which kernels and copies of GPUs are recorded. Empty: libcupti.so of the "
    "system."};
const TextSetting trace_region{"trace_region", "",
                               "The only regions of programs within which is recorded. Empty: all is."};
const TextSetting trace_ranks{"trace_ranks", "",
                              "The only ranks that record, separated by commas. Empty: all."};
const CountSetting trace_events{"trace_events", "262144",
                                "How many of its last events a thread keeps, 32 bytes each."};

}  // namespace pw::settings

namespace pw::trace {

void begin() {
  if (settings::trace_dir.text().empty()) return;
  static_cast<void>(settings::trace_events.text());  // throws where it is no number
  pw_trace_attach();
  writer();  // now, when nothing is measured: a ring takes a few milliseconds to make
}

// One of the process's rings, which begin() has made, says it for all of them.
void is_rank(int rank) {
  if (pw_trace_mine != nullptr && pw_trace_mine->ring->rank < 0) pw_trace_mine->ring->rank = rank;
}

void describe_path(std::string_view name, bool completes_at_start) {
  if (pw_trace_mine == nullptr || !completes_at_start) return;
  const unsigned number = pw_trace_name(pw_trace_mine, name.data(), name.size());
  if (number != 0) pw_trace_mine->ring->at_start[number / 8] |= static_cast<uint8_t>(1u << number % 8);
}

namespace {

// A process may have the library, and UCX's transport over a NIC beside it: each records on its own.
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
  pw_trace_attach();  // it may come before the program's first context
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
  constexpr uint64_t kFieldMask = (uint64_t{1} << 44) - 1;
  pw_trace_event event{};
  event.kind = work.kind & 0x3ff;
  event.name = pw_trace_name(mine, work.name.data(), work.name.size()) & 0x3ff;
  if (!work.where.empty()) event.where = pw_trace_name(mine, work.where.data(), work.where.size()) & 0x3ff;
  event.begin = work.begin;
  event.duration = (pw_trace_now(mine) - work.begin) & kFieldMask;
  event.bytes = work.bytes & kFieldMask;
  event.peer = work.peer;
  event.tag = work.tag;
  pw_trace_add(mine, &event);
}

}  // namespace pw::trace
