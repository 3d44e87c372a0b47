// Puts, words and gets as messages of UCX, for connections over transports that cannot access remote memory
// (TCP). UCX would emulate its put and get there, and it ends the process if the answer to one arrives when
// the connection has just broken; the failure of a message it returns. The target checks that the memory is
// still registered, stores the bytes, and answers up to which message it has done so.
#pragma once

#include <cstdint>
#include <set>

namespace pw::ucx {

enum class MessageKind : uint32_t {
  put,   ///< carries the bytes
  word,  ///< `value` is the word, stored after all puts and words with smaller numbers
  get,   ///< asks for `value` bytes
  data,  ///< answers a get
  ack,   ///< all puts and words up to `number` are done
};

/// The header before the bytes. Each sender numbers its puts and words from 1, and so it does its gets.
struct MessageHeader {
  MessageKind kind = MessageKind::put;
  int32_t rank = 0;    ///< of the sender
  int32_t status = 0;  ///< data and ack: a pw_status, the first failure since the previous one
  uint32_t unused = 0;
  uint64_t number = 0;
  uint64_t memory = 0;  ///< number of the target's registration
  uint64_t address = 0;
  uint64_t value = 0;
};
static_assert(sizeof(MessageHeader) == 48);

/// Tracks up to which number the messages of one sender are done. They may overtake one another.
class Order {
 public:
  /// All messages up to this number are done.
  [[nodiscard]] uint64_t reached() const { return reached_; }
  void done(uint64_t number) {
    if (number != reached_ + 1) {
      early_.insert(number);
      return;
    }
    ++reached_;
    for (auto next = early_.begin(); next != early_.end() && *next == reached_ + 1; next = early_.erase(next))
      ++reached_;
  }

 private:
  uint64_t reached_ = 0;
  std::set<uint64_t> early_;
};

}  // namespace pw::ucx
