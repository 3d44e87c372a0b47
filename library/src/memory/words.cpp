#include "memory/words.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

constexpr uint64_t kPage = 4096;

void check(pw_status status) {
  if (status != PW_OK) throw Error(status, last_error_message());
}

}  // namespace

bool WordPool::find(Chunk& chunk, size_t lines, size_t& first) {
  for (const size_t begin : {chunk.next, size_t{0}}) {
    size_t run = 0;
    for (size_t line = begin; line < chunk.used.size(); ++line) {
      run = chunk.used[line] ? 0 : run + 1;
      if (run < lines) continue;
      first = line + 1 - lines;
      return true;
    }
  }
  return false;
}

DeviceWords WordPool::take(uint32_t count) {
  const size_t lines = (count * sizeof(uint64_t) + kCacheLine - 1) / kCacheLine;
  std::lock_guard lock(mutex_);
  Chunk* chunk = nullptr;
  size_t first = 0;
  for (Chunk& candidate : chunks_)
    if (chunk == nullptr && find(candidate, lines, first)) chunk = &candidate;
  if (chunk == nullptr) {
    const uint64_t bytes = std::max<uint64_t>(kChunkBytes, lines * kCacheLine);
    chunk = &chunks_.emplace_back();
    chunk->region = registry_.allocate_part(device_, bytes);
    chunk->used.resize(bytes / kCacheLine);
  }
  const DeviceWords words{chunk->region, first * kCacheLine, count};
  if (first < chunk->unused) device_.clear(words.address(), lines * kCacheLine);
  chunk->unused = std::max(chunk->unused, first + lines);
  std::fill_n(chunk->used.begin() + static_cast<std::ptrdiff_t>(first), lines, true);
  chunk->next = first + lines;
  return words;
}

void WordPool::give(const DeviceWords& words) {
  std::lock_guard lock(mutex_);
  for (Chunk& chunk : chunks_) {
    if (chunk.region != words.region) continue;
    const size_t lines = (words.count * sizeof(uint64_t) + kCacheLine - 1) / kCacheLine;
    std::fill_n(chunk.used.begin() + static_cast<std::ptrdiff_t>(words.offset / kCacheLine), lines, false);
  }
}

WordAccess::WordAccess(Device& device, uint32_t count)
    : device_(device), count_(count), bytes_((count * sizeof(uint64_t) + kPage - 1) / kPage * kPage) {
  void* pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw Error(PW_NO_MEMORY, format("{} bytes to read a signal into{}", bytes_, errno_text(errno)));
  host_copy_ = static_cast<uint64_t*>(pages);
  try {
    device_.pin(host_copy_, bytes_);
    queue_ = device_.make_queue();
  } catch (...) {
    device_.unpin(host_copy_);
    munmap(host_copy_, bytes_);
    throw;
  }
}

WordAccess::~WordAccess() {
  queue_.reset();  // waits for a read that is under way
  device_.unpin(host_copy_);
  munmap(host_copy_, bytes_);
}

pw_status WordAccess::begin(const uint64_t* words) {
  Copy copy{reinterpret_cast<std::byte*>(host_copy_), reinterpret_cast<const std::byte*>(words), {}};
  copy.layout = contiguous_layout(count_ * sizeof(uint64_t));
  return queue_->copy(copy, CopyBy::engine);
}

uint64_t WordAccess::sum() const { return std::accumulate(host_copy_, host_copy_ + count_, uint64_t{0}); }

void WordAccess::drain() {
  pw_status status = PW_OK;
  while (!queue_->idle(status)) sched_yield();
  check(status);
}

uint64_t WordAccess::read(const uint64_t* words) {
  check(begin(words));
  drain();
  return sum();
}

void WordAccess::write(uint64_t* word, uint64_t value) {
  check(queue_->write(word, value));
  drain();
}

}  // namespace pw
