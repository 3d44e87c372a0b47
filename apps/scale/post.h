// Messages between ranks. A put needs no waiting receiver; what it brings can be waited for later.
#ifndef SCALE_POST_H
#define SCALE_POST_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace scale {

using Values = std::vector<uint64_t>;  // the actual contents of a message, so that results can be checked

constexpr uint64_t kSignalBytes = 8;  // the smallest message: the word that signals its arrival

/// A lane from one rank to another: messages arrive in the order of the puts.
class Lane {
 public:
  /// `name` is the same at both ends, and unique to the lane.
  explicit Lane(const std::string& name) : mailbox_(simgrid::s4u::Mailbox::by_name(name)) {}

  /// Makes the receiver known before it runs, so that puts start at once.
  void open(const simgrid::s4u::ActorPtr& receiver) { mailbox_->set_receiver(receiver); }

  [[nodiscard]] simgrid::s4u::CommPtr put(uint64_t bytes, Values values) {
    return mailbox_->put_async(new Values(std::move(values)), std::max(bytes, kSignalBytes));
  }
  /// Whether a message has arrived, so that wait() takes no time.
  [[nodiscard]] bool ready() const { return mailbox_->ready(); }
  Values wait() { return std::move(*std::unique_ptr<Values>(mailbox_->get<Values>())); }

 private:
  simgrid::s4u::Mailbox* mailbox_;
};

}  // namespace scale

#endif
