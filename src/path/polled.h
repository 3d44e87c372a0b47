// What brings something only when somebody looks, or sooner then: UCX, and network cards. Each has a thread
// of its own for when nobody does, which stands back while a Polling lives.
#pragma once

#include <atomic>
#include <span>

namespace pw {

class Polled {
 public:
  virtual ~Polled() = default;
  /// Lets it work, unless somebody else is at it.
  virtual void poll() = 0;

 protected:
  [[nodiscard]] bool is_polled() const { return pollers_.load(std::memory_order_relaxed) > 0; }

 private:
  friend class Polling;
  std::atomic<int> pollers_{0};
};

/// For a loop that waits for something that they bring. The list must outlive it.
class Polling {
 public:
  explicit Polling(std::span<Polled* const> all) : all_(all) {
    for (Polled* each : all_) each->pollers_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Polling() {
    for (Polled* each : all_) each->pollers_.fetch_sub(1, std::memory_order_relaxed);
  }
  Polling(const Polling&) = delete;
  void turn() const {
    for (Polled* each : all_) each->poll();
  }

 private:
  std::span<Polled* const> all_;
};

}  // namespace pw
