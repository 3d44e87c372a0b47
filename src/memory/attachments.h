// What paths keep with a region or a remote, for as long as that lives: a registration, a key made usable.
// UCX and each network card have a number of their own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

namespace pw {

inline constexpr size_t kUcxAttachment = 0, kFirstNicAttachment = 1, kMostNics = 7;

class Attachments {
 public:
  /// What that number has, made by `make` (a shared_ptr<Kind>) at the first call. May throw what `make` does.
  template <typename Kind, typename Make>
  Kind& get(size_t number, Make&& make) {
    Entry& entry = entries_[number];
    if (void* known = entry.known.load(std::memory_order_acquire)) return *static_cast<Kind*>(known);
    std::lock_guard lock(mutex_);
    if (entry.kept == nullptr) {
      entry.kept = make();
      entry.known.store(entry.kept.get(), std::memory_order_release);
    }
    return *static_cast<Kind*>(entry.kept.get());
  }
  void drop() {
    for (Entry& entry : entries_) {
      entry.known.store(nullptr, std::memory_order_relaxed);
      entry.kept.reset();
    }
  }

 private:
  struct Entry {
    std::atomic<void*> known{nullptr};
    std::shared_ptr<void> kept;
  };
  std::mutex mutex_;
  std::array<Entry, kFirstNicAttachment + kMostNics> entries_;
};

}  // namespace pw
