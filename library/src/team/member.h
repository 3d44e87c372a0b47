// A rank's end of the team: its connections to the hub and to other ranks, and the one thread that serves
// them and watches processes of this host (team/watches.h).
//
// While there is a hub, it tells all ranks who is lost and which meetings failed. When it is gone because
// rank 0 left or died, the ranks form a ring: each keeps a connection to the next one, and such news goes on
// along all connections. The hub may have ended between telling one rank and the next, and a connection may
// be younger than the news: so a rank says all it knows once it finds the hub gone, and to whom it meets
// later.
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

#include "team/channel.h"
#include "team/hub.h"
#include "team/losses.h"
#include "team/meetings.h"
#include "team/mesh.h"
#include "team/team.h"
#include "team/wake.h"
#include "team/watches.h"

namespace pw {

/// This process, as other ranks see it; it listens to them at these addresses.
wire::Identity own_identity(std::string addresses);

class Member final : public Team {
 public:
  /// `channel` has been challenged and has the join message queued; `hub` is there on rank 0 only. Waits
  /// until all ranks are in. Throws Error.
  Member(int rank, int size, const Secret& secret, Channel channel, Listening listening,
         std::unique_ptr<Hub> hub, uint64_t deadline);
  ~Member() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] uint64_t job() const override { return job_; }
  [[nodiscard]] Secret secret_for(std::string_view purpose) const override {
    return derive_secret(secret_, purpose);
  }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) override;
  std::vector<std::vector<std::byte>> all_gather_parts(Collective kind, std::span<const std::byte> mine,
                                                       uint64_t timeout_ns) override;
  std::unique_ptr<Meeting> meet(Collective kind) override;
  std::unique_ptr<Meeting> meet_among(Collective kind, std::span<const int> ranks) override;
  [[nodiscard]] bool several_hosts() const override { return several_hosts_; }
  [[nodiscard]] bool lost(int rank) const noexcept override { return losses_.lost(rank); }
  [[nodiscard]] int any_lost() const noexcept override { return losses_.any(); }
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

  /// A collective that timed out here. The hub has this rank's part, and may have passed it on: so this rank
  /// can only repeat it.
  struct Unfinished {
    CollectiveCall call;
    Digest digest;  ///< of the bytes
  };

  class Attended;

  /// This rank's part of the next exchange through the hub; the hub's answer.
  Bytes gather(Collective kind, std::span<const std::byte> mine, uint64_t timeout_ns);
  [[nodiscard]] bool resumes(const CollectiveCall& call, std::span<const std::byte> mine);
  uint64_t begin(const CollectiveCall& call, std::span<const std::byte> mine);
  void refuse_while_unfinished(const CollectiveCall& call, const char* addition);
  void abandon();
  [[nodiscard]] Error interrupted() const;

  [[nodiscard]] wire::Identity identity_of(int rank) const;
  Letters exchange(uint64_t meeting, const Letters& mine, uint64_t timeout_ns);
  void write_to(int rank, uint64_t meeting, ByteView text, uint64_t deadline);
  static SharedBytes packed_objection(uint64_t collective, const Error& why);
  bool end_for_all(uint64_t collective, const Error& why);
  void end_both(const Meetings::Conflict& conflict);
  void object(uint64_t meeting, const Error& why);
  [[nodiscard]] int gone_without(const std::vector<int>& missing) const;
  [[nodiscard]] int not_reached(const std::vector<int>& partners) const;
  [[nodiscard]] int not_written_to(const std::vector<int>& partners) const;
  using News = std::vector<std::pair<wire::Type, SharedBytes>>;
  [[nodiscard]] News news();
  void tell(int rank);
  void hear_out(uint64_t meeting);
  bool spread(uint64_t meeting, const Error& why);

  void run();
  void serve();
  void hear(const Mesh::Heard& heard);
  void hear_end(const Mesh::Heard& heard);
  void hear_message(int rank, const Message& message);
  void hear_letter(int rank, const wire::Letter& letter);
  void hear_objection(const Message& message);
  void hear_failure(wire::Failure failure);
  void follow_next();
  void receive();
  void handle(const Message& message);
  void say_goodbye(uint64_t until);
  void hub_ended();
  void lose(int rank, wire::How how);
  void check_watches();
  void answer(uint64_t sequence, Answer given);
  void stop();

  const int rank_, size_;
  const uint64_t job_;
  const Secret secret_;  ///< of what the ranks protect between themselves; not that of the handshakes
  const int process_;    ///< a forked child is not this rank
  std::unique_ptr<Hub> hub_;
  Losses losses_;
  Bytes roster_;  ///< as the hub sent it, which takes the least room; written before `welcomed_`
  bool several_hosts_ = false;
  Watches watches_;  ///< of the thread
  Mesh mesh_;

  std::mutex mutex_;  ///< what follows
  std::condition_variable changed_;
  Channel channel_;
  bool welcomed_ = false, hub_alive_ = true, leaving_ = false;
  bool left_mesh_ = false, said_goodbye_ = false;  ///< to the other ranks; to the hub
  bool ended_ = false;                             ///< the thread has nothing more to do
  bool hurried_ = false;                           ///< leave without waiting for the hub
  bool abandoned_ = false;  ///< an all_gather was interrupted: there will be none any more
  std::optional<Answer> refused_;
  bool gathering_ = false;             ///< some thread is in all_gather(): one at a time
  std::optional<uint64_t> under_way_;  ///< the number of the all_gather that the hub is to answer
  std::optional<Answer> answer_;
  std::optional<Unfinished> unfinished_;
  Meetings meetings_;
  std::map<int, std::string> unreached_;  ///< by rank: why what was for it could not be sent
  uint64_t fence_ = 0;                    ///< of the last hear_out()
  std::map<int, uint64_t> fenced_;        ///< by rank: the last that came back
  const std::string trace_name_;          ///< of the team, in a trace

  Wake wake_;
  std::thread thread_;
};

}  // namespace pw
