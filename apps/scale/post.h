// Messages between ranks. A put needs no receiver that waits; what it brings can be waited for later.
#ifndef SCALE_POST_H
#define SCALE_POST_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace scale {

using Values = std::vector<uint64_t>;  // what a message really carries, so that results can be checked

constexpr uint64_t kSignalBytes = 8;  // the least message: the word that tells of its arrival

/// A lane from one rank to another: messages arrive in the order in which they were put.
class Lane {
 public:
  /// `name` is the same at both ends, and no other lane's.
  explicit Lane(const std::string& name) : mailbox_(simgrid::s4u::Mailbox::by_name(name)) {}

  /// Makes the receiver known before it runs, so that puts leave at once.
  void open(const simgrid::s4u::ActorPtr& receiver) { mailbox_->set_receiver(receiver); }

  [[nodiscard]] simgrid::s4u::CommPtr put(uint64_t bytes, Values values) {
    return mailbox_->put_async(new Values(std::move(values)), std::max(bytes, kSignalBytes));
  }
  /// Whether a message is here, so that wait() takes no time.
  [[nodiscard]] bool ready() const { return mailbox_->ready(); }
  Values wait() { return std::move(*std::unique_ptr<Values>(mailbox_->get<Values>())); }

 private:
  simgrid::s4u::Mailbox* mailbox_;
};

}  // namespace scale

#endif
