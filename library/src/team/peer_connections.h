// Connections between two ranks. A connection is made when one of the two first sends to the other. Both ends
// prove that they know the job's secret, as on connections to the bootstrap server.
#pragma once

#include <poll.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "team/accept_queue.h"
#include "team/channel.h"
#include "team/ticket.h"

namespace pw {

/// The listening sockets of a rank, and their addresses for the other ranks.
struct Listening {
  std::vector<Descriptor> listeners;
  std::string addresses;  ///< separated by spaces

  /// A Unix socket; with `hosts`, TCP as well. Throws Error.
  static Listening open(bool hosts);
};

/// Any thread may call the functions in the first part; those in the second part are for the team's thread.
/// No function waits.
class PeerConnections {
 public:
  enum class EventKind : uint8_t {
    message,
    opened,  ///< by the other rank, which may know less than this one
    ended    ///< the connection ended, or the attempts to make it did
  };
  struct Event {
    int rank = 0;
    EventKind kind = EventKind::message;
    Message message{};
    wire::How how = wire::How::none;  ///< departed: after a goodbye; died: without; ended: never answered
    std::string why{};                ///< why it ended
  };

  PeerConnections(int rank, int size, const Secret& secret, Listening listening);

  /// Begins to connect to the rank, which listens at `addresses`. Returns false if there is a connection
  /// already. If nobody answers by the deadline, serve() returns an `ended` event.
  bool connect(int rank, const std::string& addresses, uint64_t deadline);
  // The next two functions write what they can. The team's thread writes the rest, once it is woken.
  /// Returns false if there is no connection.
  bool send(int rank, wire::Type type, SharedBytes payload);
  /// Sends to all connected ranks.
  void send_all(wire::Type type, const SharedBytes& payload);
  /// Whether there is a connection. A connection that has ended counts until the next write(), so that its
  /// last events are handled first.
  [[nodiscard]] bool connected(int rank) const;
  /// Whether some message to the rank has not left this process.
  [[nodiscard]] bool unsent(int rank) const;

  // ---- for the thread that serves the connections ----
  /// Listens on the Unix socket alone from now on, because no other host has a rank.
  void leave_network();
  /// Drops the connections that have ended, writes to the others, and retries those that got no answer.
  void write();
  /// The time of the next retry.
  [[nodiscard]] uint64_t due() const;
  void add_to(std::vector<pollfd>& polled);
  /// Serves the sockets that add_to() added, after poll(). Returns messages first, then the other events.
  std::vector<Event> serve(std::span<const pollfd> polled);
  /// Sends a goodbye on all connections, after all other messages. New connections are refused.
  void leave();
  [[nodiscard]] bool unsent() const;  ///< whether anything to any rank is unsent
  /// Ends sending. The other ranks have read everything once they have ended their connections.
  void finish();
  [[nodiscard]] bool connected() const;  ///< whether any connection is left
  void close();

 private:
  enum class State : uint8_t {
    connecting,  ///< by this rank: connecting, or waiting to try again
    greeted,     ///< by this rank, which has sent its hello
    challenged,  ///< opened by the other rank
    open,
    unanswered  ///< the attempts of this rank
  };
  struct Connection {
    int rank = 0;
    Channel channel;
    State state = State::connecting;
    wire::Hello hello{};
    std::vector<Address> addresses{};  ///< addresses to try, if this rank connects
    size_t next_address = 0;
    uint64_t until = 0;          ///< deadline of all attempts
    uint64_t attempt_until = 0;  ///< deadline of this attempt, or end of the pause
    bool full = false;           ///< a process listens there, but had no place
    std::string why = "it listens nowhere";
    std::vector<std::pair<wire::Type, SharedBytes>> pending{};  ///< messages to send once the connection is
                                                                ///< open
    bool orderly = false;                                       ///< a goodbye has arrived
    bool finished = false;                                      ///< this rank has ended sending
    bool ended = false;                                         ///< everything was read

    [[nodiscard]] bool unsent() const { return !ended && (channel.unsent() || !pending.empty()); }
  };

  [[nodiscard]] Secret queue_secret(int rank) const;
  Connection* find(int rank) const;  ///< the connection that is open or being opened
  static void queue(Connection& connection, wire::Type type, SharedBytes payload);
  void try_next_address(Connection& connection);
  void send_hello(Connection& connection);
  void finish_connect(Connection& connection);
  void end(Connection& connection, std::vector<Event>& events);
  void add_incoming(AcceptQueue::Authenticated incoming);
  bool handle(Connection& connection, const Message& message, std::vector<Event>& events);
  void receive(Connection& connection, std::vector<Event>& events);

  const int rank_, size_;
  const Secret secret_;
  mutable std::mutex mutex_;  ///< protects the members below
  AcceptQueue accept_queue_;
  std::vector<std::unique_ptr<Connection>> connections_;
  size_t polled_ = 0;  ///< number of connections in the last add_to()
  bool leaving_ = false;
};

}  // namespace pw
