// The door of the hub: those who have connected and proven nothing yet. Anybody who reaches the socket can
// stand here, so that each costs little: one of a few places, a few hundred bytes, and one message. That
// message must prove that the sender knows the job's secret. Who proves it leaves the door at once and is
// never put out again; who does not may be put out at any time, and a rank that was comes again
// (rendezvous.cpp).
#pragma once

#include <poll.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "team/channel.h"
#include "team/socket.h"

namespace pw {

class Door {
 public:
  struct Guest {
    Channel channel;
    wire::Hello hello;
  };

  Door(const Secret& secret, std::vector<Descriptor> listeners);

  /// Adds what to wait for.
  void add_to(std::vector<pollfd>& polled) const;
  /// What add_to() added, after poll(): hears who waits, takes in others, and returns who has proven itself.
  std::vector<Guest> serve(std::span<const pollfd> polled);

  /// Throws Error(PW_DENIED) unless the message proves that its sender knows the secret, and is no
  /// repetition.
  wire::Hello check(const Message& message);

  /// Counts one more that was refused, for refusals().
  void note(const std::string& why);

  /// The others are closed.
  void keep_first_listener();
  /// Nobody is taken in any more, and who waits is sent away.
  void close();
  /// ". 7 connections were refused, the last because: ..."; empty when there was none.
  [[nodiscard]] std::string refusals() const;

 private:
  struct Stranger {
    Channel channel;
    Origin source;
    bool gone = false;
  };

  void take_in(const Descriptor& listener, std::vector<Guest>& guests);
  void hear(Stranger& stranger, std::vector<Guest>& guests);
  void make_room();

  const Secret hello_key_;
  std::vector<Descriptor> listeners_;
  std::vector<Stranger> strangers_;
  std::set<wire::Nonce> greeted_;  ///< of the hellos that were right: each is good once
  std::minstd_rand random_;
  int refused_ = 0;
  std::string last_refused_;
};

}  // namespace pw
