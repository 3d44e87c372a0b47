// A signal: the counter that peers raise and this rank waits on.
#pragma once

#include <cstdint>
#include <vector>

#include "context/context.h"

namespace pw {

/// A signal of this rank: one word for each rank that may raise it; its value is their sum.
class Signal {
 public:
  Signal(Context& context, int sender);
  ~Signal();
  Signal(const Signal&) = delete;

  [[nodiscard]] uint64_t value() const noexcept;
  pw_status wait(uint64_t value, uint64_t timeout_ns) const;
  [[nodiscard]] std::vector<std::byte> key() const;

 private:
  Context& context_;
  int sender_;
  uint32_t slot_;
  uint32_t words_;
  uint32_t first_;
};

}  // namespace pw
