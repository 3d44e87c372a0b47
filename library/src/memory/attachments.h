// Data that a path keeps with a region or a remote for its lifetime, such as a registration or an imported
// key. Each path has a number of its own in a context.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

namespace pw {

class Attachments {
 public:
  static constexpr size_t kMostPaths = 8;

  /// Returns the attachment of the path with that number. `make` makes it (a shared_ptr<Kind>) at the first
  /// call. Throws what `make` throws.
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
  std::array<Entry, kMostPaths> entries_;
};

/// Assigns the numbers of one context.
class AttachmentNumbers {
 public:
  /// Returns a number that no other path has; Attachments::kMostPaths if none is left.
  size_t take() { return next_ < Attachments::kMostPaths ? next_++ : Attachments::kMostPaths; }

 private:
  size_t next_ = 0;
};

}  // namespace pw
