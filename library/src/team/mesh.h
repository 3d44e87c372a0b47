// Connections between ranks, without the hub: each is made when one of the two first has something to say to
// the other, and proves, as those to the hub do, that both know the job's secret.
#pragma once

#include <poll.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "team/channel.h"
#include "team/door.h"
#include "team/ticket.h"

namespace pw {

/// Where a rank listens to others.
struct Listening {
  std::vector<Descriptor> listeners;
  std::string addresses;  ///< with spaces between

  /// A Unix socket; with `hosts`, TCP as well. Throws Error.
  static Listening open(bool hosts);
};

/// Functions are for any thread, but those of the one thread that serves it. None of them waits.
class Mesh {
 public:
  enum class What : uint8_t {
    message,
    opened,  ///< by the other rank: it may have been told less than this one knows
    ended    ///< the connection, or the attempts to make it
  };
  struct Heard {
    int rank = 0;
    What what = What::message;
    Message message{};
    wire::How how = wire::How::none;  ///< left: after a goodbye; died: without; ended: it was never answered
    std::string why{};                ///< ended
  };

  Mesh(int rank, int size, const Secret& secret, Listening listening);

  /// Begins a connection to the rank, which listens at `addresses`; false where there is one. That nobody
  /// answers there by the deadline is heard of.
  bool link(int rank, const std::string& addresses, uint64_t deadline);
  // What the two that follow cannot write at once the thread goes on with, once it is woken.
  /// False where there is no connection.
  bool send(int rank, wire::Type type, SharedBytes payload);
  /// To all that there is a connection with.
  void send_all(wire::Type type, const SharedBytes& payload);
  /// Also until what came last from it has been heard of: up to the next write().
  [[nodiscard]] bool linked(int rank) const;
  /// Whether something for the rank has not left this process.
  [[nodiscard]] bool unsent(int rank) const;

  // ---- of the thread that serves it ----
  /// Listens on the Unix socket alone from now on: no other host has a rank.
  void leave_network();
  /// Drops the connections that have ended, sends on the others what can be, and calls again who has not
  /// answered.
  void write();
  /// When write() has something to do though nothing has arrived.
  [[nodiscard]] uint64_t due() const;
  void add_to(std::vector<pollfd>& polled);
  /// What add_to() added, after poll(). Messages first, then what became of connections.
  std::vector<Heard> serve(std::span<const pollfd> polled);
  /// Says goodbye on all connections, after all else. New ones are no longer taken.
  void leave();
  [[nodiscard]] bool unsent() const;  ///< anything, to anybody
  /// Nothing is sent any more. Others have read all once they have ended their connections.
  void finish();
  [[nodiscard]] bool linked() const;  ///< with anybody
  void close();

 private:
  enum class State : uint8_t {
    calling,     ///< by this rank: connecting, or waiting to try again
    called,      ///< by this rank: it has said hello
    challenged,  ///< this rank was called
    open,
    unanswered  ///< this rank's call
  };
  struct Link {
    int rank = 0;
    Channel channel;
    State state = State::calling;
    wire::Hello hello{};
    std::vector<Address> ways{};  ///< of a rank that is called: where it listens
    size_t next_way = 0;
    uint64_t until = 0;      ///< how long to call
    uint64_t way_until = 0;  ///< how long to wait at this way; between two rounds, until the next
    bool full = false;       ///< somebody listens there, but had no place in this round
    std::string why = "it listens nowhere";
    std::vector<std::pair<wire::Type, SharedBytes>> pending{};  ///< until it is open
    bool orderly = false;                                       ///< a goodbye has come
    bool finished = false;                                      ///< sending
    bool ended = false;                                         ///< all is read

    [[nodiscard]] bool unsent() const { return !ended && (channel.unsent() || !pending.empty()); }
  };

  [[nodiscard]] Secret door_secret(int of) const;
  Link* find(int rank) const;  ///< that messages to the rank go by
  static void queue(Link& link, wire::Type type, SharedBytes payload);
  void call(Link& link);
  void greet(Link& link);
  void connected(Link& link);
  void end(Link& link, std::vector<Heard>& heard);
  void welcome(Door::Guest guest);
  bool handle(Link& link, const Message& message, std::vector<Heard>& heard);
  void receive(Link& link, std::vector<Heard>& heard);

  const int rank_, size_;
  const Secret secret_;
  mutable std::mutex mutex_;  ///< of what follows
  Door door_;
  std::vector<std::unique_ptr<Link>> links_;
  size_t polled_ = 0;  ///< links of the last add_to()
  bool leaving_ = false;
};

}  // namespace pw
