// Ranges of NVTX as regions of the program. NVTX loads this library at the program's first call
// (NVTX_INJECTION64_PATH) and hands over its table of functions, whose places are those of NVTX 3.
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "peerway/trace/recorder.h"

namespace pw::trace {
namespace {

struct Domain {
  std::string name;
};
using Handle = Domain*;

struct Attributes {  // nvtxEventAttributes_v2
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;  // 1: chars, 2: wide chars, 3: a registered string
  const void* message;
};

std::string narrow(const wchar_t* text) {
  std::string name;
  for (; text != nullptr && *text != 0; ++text) name += *text < 128 ? static_cast<char>(*text) : '?';
  return name;
}

std::string text_of(const Attributes* attributes) {
  if (attributes == nullptr || attributes->message == nullptr) return "unnamed";
  if (attributes->message_type == 2) return narrow(static_cast<const wchar_t*>(attributes->message));
  return static_cast<const char*>(attributes->message);  // a registered string is ours, and alike
}

struct Open {
  const Domain* domain;
  pw_trace_writer* writer;  ///< null: it is not recorded
  pw_trace_event event;
  bool counts;
};

struct Started {
  std::mutex mutex;
  std::map<uint64_t, Open> ranges;
  uint64_t last = 0;
};
Started& started() {
  static auto* only = new Started;
  return *only;
}

thread_local std::vector<Open> stack;

Open begin(const Domain* domain, std::string_view text, pw_trace_kind kind) {
  Open open{domain, nullptr, {}, pw_trace_counts(text.data(), text.size()) != 0};
  if (open.counts) pw_trace_region_begins();
  if (!pw_trace_recording()) return open;
  open.writer = pw_trace_mine != nullptr ? pw_trace_mine : pw_trace_open("nvtx");
  if (open.writer == nullptr) return open;
  open.event.kind = kind & 0x3ff;
  open.event.name = pw_trace_name(open.writer, text.data(), text.size()) & 0x3ff;
  if (domain != nullptr && !domain->name.empty())
    open.event.where = pw_trace_name(open.writer, domain->name.data(), domain->name.size()) & 0x3ff;
  open.event.peer = open.event.tag = -1;
  pw_trace_begin(open.writer, &open.event);
  return open;
}

void end(Open& open) {
  if (open.counts) pw_trace_region_ends();
  if (open.writer == nullptr || open.writer != pw_trace_mine) return;
  pw_trace_end(open.writer, &open.event);
  pw_trace_add(open.writer, &open.event);
}

int push(const Domain* domain, std::string_view text) {
  stack.push_back(begin(domain, text, PW_TRACE_REGION));
  return static_cast<int>(stack.size()) - 1;
}

int pop(const Domain* domain) {
  for (size_t i = stack.size(); i-- > 0;) {
    if (stack[i].domain != domain) continue;
    end(stack[i]);
    stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(i));
    return static_cast<int>(i);
  }
  return -1;  // NVTX has no word for a pop of nothing
}

// The range may be ended by another thread, so nothing of it is open in this one.
uint64_t start(const Domain* domain, std::string_view text) {
  Open open = begin(domain, text, PW_TRACE_RANGE);
  if (open.writer != nullptr) --open.writer->ring->depth;
  const std::lock_guard lock(started().mutex);
  started().ranges.emplace(++started().last, open);
  return started().last;
}

void finish(uint64_t id) {
  Open open{};
  {
    const std::lock_guard lock(started().mutex);
    const auto range = started().ranges.find(id);
    if (range == started().ranges.end()) return;
    open = range->second;
    started().ranges.erase(range);
  }
  if (open.counts) pw_trace_region_ends();
  if (open.writer == nullptr) return;
  pw_trace_writer* writer = pw_trace_mine != nullptr ? pw_trace_mine : pw_trace_open("nvtx");
  if (writer == nullptr) return;
  if (writer != open.writer) {  // its names are numbered anew in the ring of the thread that ends it
    const auto number = [&](unsigned name) {
      const char* text = open.writer->ring->name[name];
      return name == 0 ? 0u : pw_trace_name(writer, text, strlen(text)) & 0x3ff;
    };
    open.event.name = number(open.event.name) & 0x3ff;
    open.event.where = number(open.event.where) & 0x3ff;
  }
  ++writer->ring->depth;
  pw_trace_end(writer, &open.event);
  pw_trace_add(writer, &open.event);
}

void mark(const Domain* domain, std::string_view text) {
  Open open = begin(domain, text, PW_TRACE_MARK);
  if (open.counts) pw_trace_region_ends();
  open.counts = false;
  if (open.writer == nullptr) return;
  --open.writer->ring->depth;
  pw_trace_add(open.writer, &open.event);
}

const char* kept(std::string text) {
  static std::mutex mutex;
  static auto* all = new std::map<std::string, int>;
  const std::lock_guard lock(mutex);
  return all->try_emplace(std::move(text)).first->first.c_str();
}

using Function = void (*)();
using GetExportTable = const void* (*)(uint32_t);
struct Callbacks {  // NvtxExportTableCallbacks
  size_t struct_size;
  int (*table)(int module, Function*** table, unsigned* size);
};

template <typename Body>
void set(Function** table, unsigned size, unsigned place, Body* body) {
  if (place < size && table[place] != nullptr) *table[place] = reinterpret_cast<Function>(body);
}

void set_core(Function** table, unsigned size) {
  using A = const Attributes*;
  using C = const char*;
  using W = const wchar_t*;
  set(table, size, 1, +[](A a) { mark(nullptr, text_of(a)); });
  set(table, size, 2, +[](C text) { mark(nullptr, text); });
  set(table, size, 3, +[](W text) { mark(nullptr, narrow(text)); });
  set(table, size, 4, +[](A a) { return start(nullptr, text_of(a)); });
  set(table, size, 5, +[](C text) { return start(nullptr, text); });
  set(table, size, 6, +[](W text) { return start(nullptr, narrow(text)); });
  set(table, size, 7, +[](uint64_t id) { finish(id); });
  set(table, size, 8, +[](A a) { return push(nullptr, text_of(a)); });
  set(table, size, 9, +[](C text) { return push(nullptr, text); });
  set(table, size, 10, +[](W text) { return push(nullptr, narrow(text)); });
  set(table, size, 11, +[] { return pop(nullptr); });
}

void set_domains(Function** table, unsigned size) {
  using A = const Attributes*;
  set(table, size, 1, +[](Handle domain, A a) { mark(domain, text_of(a)); });
  set(table, size, 2, +[](Handle domain, A a) { return start(domain, text_of(a)); });
  set(table, size, 3, +[](Handle, uint64_t id) { finish(id); });
  set(table, size, 4, +[](Handle domain, A a) { return push(domain, text_of(a)); });
  set(table, size, 5, +[](Handle domain) { return pop(domain); });
  set(table, size, 10, +[](Handle, const char* text) { return kept(text); });
  set(table, size, 11, +[](Handle, const wchar_t* text) { return kept(narrow(text)); });
  // Kept to the end: ranges and threads may hold it.
  set(table, size, 12, +[](const char* name) { return new Domain{name}; });
  set(table, size, 13, +[](const wchar_t* name) { return new Domain{narrow(name)}; });
}

}  // namespace
}  // namespace pw::trace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    pw::trace::GetExportTable get_table) {
  if (pw_trace_attach() == 0) return 0;
  const auto* callbacks = static_cast<const pw::trace::Callbacks*>(get_table(1));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return 0;
  pw::trace::Function** table = nullptr;
  unsigned size = 0;
  if (callbacks->table(1, &table, &size) == 1) pw::trace::set_core(table, size);
  if (callbacks->table(5, &table, &size) == 1) pw::trace::set_domains(table, size);
  return 1;
}
