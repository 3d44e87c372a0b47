// The accept queue: connections that have not proved yet that they know the job's secret. Anybody who reaches
// the socket can connect, so a pending connection costs little: one of a few places, a few hundred bytes, and
// one message. That message must prove that its sender knows the secret. An authenticated connection leaves
// the queue at once and cannot be evicted. A pending one may be evicted at any time; an evicted rank connects
// again (rendezvous.cpp).
#pragma once

#include <poll.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "team/channel.h"
#include "team/socket.h"

namespace pw {

class AcceptQueue {
 public:
  struct Authenticated {
    Channel channel;
    wire::Hello hello;
  };

  AcceptQueue(const Secret& secret, std::vector<Descriptor> listeners);

  /// Adds the sockets to poll.
  void add_to(std::vector<pollfd>& polled) const;
  /// Serves the sockets that add_to() added, after poll(): reads from pending connections, accepts new
  /// ones, and returns those that are authenticated now.
  std::vector<Authenticated> serve(std::span<const pollfd> polled);

  /// Throws Error(PW_DENIED) unless the message proves that its sender knows the secret. Each hello is
  /// accepted only once.
  wire::Hello check(const Message& message);

  /// Counts a refused connection, for refusals().
  void count_refusal(const std::string& why);

  /// Closes the other listeners.
  void keep_first_listener();
  /// Closes all listeners and pending connections.
  void close();
  /// ". 7 connections were refused, the last because: ..."; empty if none was.
  [[nodiscard]] std::string refusals() const;

 private:
  struct Pending {
    Channel channel;
    Origin source;
    bool gone = false;
  };

  void accept_new(const Descriptor& listener, std::vector<Authenticated>& authenticated);
  void read_from(Pending& pending, std::vector<Authenticated>& authenticated);
  void evict_one();

  const Secret hello_key_;
  std::vector<Descriptor> listeners_;
  std::vector<Pending> pending_;
  std::set<wire::Nonce> used_nonces_;  ///< of accepted hellos, each of which is accepted only once
  std::minstd_rand random_;
  int refused_ = 0;
  std::string last_refused_;
};

}  // namespace pw
