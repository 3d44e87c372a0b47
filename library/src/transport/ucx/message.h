// Puts, words and gets as messages of UCX, for connections over transports that cannot reach remote memory by
// themselves (TCP). UCX would emulate its put and get there, and ends the process when the answer to one
// meets a connection that has just broken; of a message it gives the failure back. The target stores what
// comes, after a look at whether the memory is still registered, and answers with how far it has come.
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

/// The header in front of the bytes. Puts and words of one sender are numbered from 1, and so are its gets.
struct MessageHeader {
  MessageKind kind = MessageKind::put;
  int32_t rank = 0;    ///< of the sender
  int32_t status = 0;  ///< data and ack: a pw_status, the first failure since the one before
  uint32_t unused = 0;
  uint64_t number = 0;
  uint64_t memory = 0;  ///< which registration of the target
  uint64_t address = 0;
  uint64_t value = 0;
};
static_assert(sizeof(MessageHeader) == 48);

/// Up to which number the messages of one sender have arrived. They may overtake one another.
class Order {
 public:
  /// All numbers up to this one have been done.
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
