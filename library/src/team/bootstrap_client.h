// The bootstrap client: a rank's connections to the bootstrap server and to other ranks, and the one thread
// that serves them and watches processes of this host (team/watches.h).
//
// While there is a server, it reports lost ranks and aborted exchanges to all. After rank 0 has left or
// died, the ranks form a ring: each keeps a connection to the next one, and passes reports on along all its
// connections. The server may have ended between two reports, and a connection may be younger than a
// report. So a rank sends all it knows when it finds the server gone, and again on each new connection.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "team/bootstrap_server.h"
#include "team/call_log.h"
#include "team/channel.h"
#include "team/losses.h"
#include "team/peer_connections.h"
#include "team/team.h"
#include "team/wakeup.h"
#include "team/watches.h"

namespace pw {

/// This process, as other ranks see it. It listens at `addresses`.
wire::Identity own_identity(std::string addresses);

class BootstrapClient final : public Team {
 public:
  /// Waits until all ranks have joined. `channel` has answered the challenge and has the join message queued;
  /// `server` is null except at rank 0. Throws Error.
  BootstrapClient(int rank, int size, const Secret& secret, Channel channel, Listening listening,
                  std::unique_ptr<BootstrapServer> server, uint64_t deadline);
  ~BootstrapClient() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] uint64_t job() const override { return job_; }
  [[nodiscard]] Secret secret_for(std::string_view purpose) const override {
    return derive_secret(secret_, purpose);
  }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) override;
  std::vector<std::vector<std::byte>> all_gather_parts(CallKind kind, std::span<const std::byte> mine,
                                                       uint64_t timeout_ns) override;
  std::unique_ptr<Exchange> begin_exchange(CallKind kind) override;
  std::unique_ptr<Exchange> begin_exchange_among(CallKind kind, std::span<const int> ranks) override;
  [[nodiscard]] bool several_hosts() const override { return several_hosts_; }
  [[nodiscard]] bool lost(int rank) const noexcept override { return losses_.lost(rank); }
  [[nodiscard]] int any_lost() const noexcept override { return losses_.first_lost(); }
  [[nodiscard]] std::string describe_loss(int rank) const override {
    return losses_.describe(rank, identity_of(rank));
  }
  [[nodiscard]] std::shared_ptr<void> on_loss(std::function<void(int)> callback) override;

 private:
  struct Answer {
    pw_status status = PW_OK;
    std::string text;
    Bytes data;
  };

  /// A collective call that timed out at this rank. The server has this rank's part and may have passed it
  /// on, so this rank can only repeat the call.
  struct Unfinished {
    CollectiveCall call;
    Digest digest;  ///< of the bytes that this rank gave
  };

  class ClientExchange;

  /// Gives this rank's part of a collective call to the server, and returns the server's answer.
  Bytes gather(CallKind kind, std::span<const std::byte> mine, uint64_t timeout_ns);
  [[nodiscard]] bool resumes(const CollectiveCall& call, std::span<const std::byte> mine);
  uint64_t begin(const CollectiveCall& call, std::span<const std::byte> mine);
  void refuse_while_unfinished(const CollectiveCall& call, const char* addition);
  void abandon();
  [[nodiscard]] Error interrupted() const;

  [[nodiscard]] wire::Identity identity_of(int rank) const;
  PeerMessages exchange(uint64_t number, const PeerMessages& mine, uint64_t timeout_ns);
  void write_to(int rank, uint64_t number, ByteView text, uint64_t deadline);
  static SharedBytes packed_abort(uint64_t collective, const Error& why);
  bool end_for_all(uint64_t collective, const Error& why);
  void end_both(const CallLog::Conflict& conflict);
  void abort(uint64_t number, const Error& why);
  [[nodiscard]] int lost_among(const std::vector<int>& missing) const;
  [[nodiscard]] int unreachable_among(const std::vector<int>& partners) const;
  [[nodiscard]] int unsent_among(const std::vector<int>& partners) const;
  using Reports = std::vector<std::pair<wire::Type, SharedBytes>>;
  [[nodiscard]] Reports reports();
  void send_reports(int rank);
  void drain_partners(uint64_t number);
  bool broadcast_abort(uint64_t number, const Error& why);

  void run();
  void serve();
  void handle_event(const PeerConnections::Event& event);
  void handle_end(const PeerConnections::Event& event);
  void handle_message(int rank, const Message& message);
  void handle_part(int rank, const wire::ExchangePart& part);
  void handle_abort(const Message& message);
  void handle_failure(wire::Failure failure);
  void follow_next();
  void receive();
  void handle(const Message& message);
  void say_goodbye(uint64_t until);
  void server_ended();
  void lose(int rank, wire::How how);
  void check_watches();
  void answer(uint64_t sequence, Answer received);
  void stop();

  const int rank_, size_;
  const uint64_t job_;
  const Secret secret_;  ///< for the peer connections; the handshakes with the server use another secret
  const int process_;    ///< its process id; a forked child is not this rank
  std::unique_ptr<BootstrapServer> server_;
  Losses losses_;
  Bytes roster_;  ///< packed, as the server sent it; written before `welcomed_`
  bool several_hosts_ = false;
  Watches watches_;  ///< used only by the thread
  PeerConnections peers_;

  std::mutex mutex_;  ///< protects the members below
  std::condition_variable changed_;
  Channel channel_;
  bool welcomed_ = false, server_alive_ = true, leaving_ = false;
  bool left_peers_ = false, said_goodbye_ = false;  ///< to the other ranks; to the server
  bool ended_ = false;                              ///< the thread has nothing more to do
  bool hurried_ = false;                            ///< leave without waiting for the server
  bool abandoned_ = false;                          ///< an all_gather was interrupted, so no more can follow
  std::optional<Answer> refused_;
  bool gathering_ = false;             ///< a thread is in all_gather(); only one may be
  std::optional<uint64_t> under_way_;  ///< number of the all_gather that the server must answer
  std::optional<Answer> answer_;
  std::optional<Unfinished> unfinished_;
  CallLog calls_;
  std::map<int, std::string> unreached_;  ///< by rank: why messages to it could not be sent
  uint64_t fence_ = 0;                    ///< number of the last fence of drain_partners()
  std::map<int, uint64_t> fenced_;        ///< by rank: the last fence that it has answered
  const std::string trace_name_;          ///< of the team, in a trace

  Wakeup wakeup_;
  std::thread thread_;
};

}  // namespace pw
