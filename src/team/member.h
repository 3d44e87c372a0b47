// A rank's end of the team: its connection to the hub and the one thread that serves it and watches the
// processes of the other ranks on this host.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "team/channel.h"
#include "team/hub.h"
#include "team/losses.h"
#include "team/team.h"
#include "team/wake.h"

namespace pw {

/// This process, as other ranks see it.
wire::Identity own_identity();

class Member final : public Team {
 public:
  /// `channel` has been challenged and has the join message queued; `hub` is there on rank 0 only. Waits
  /// until all ranks are in. Throws Error.
  Member(int rank, int size, const Secret& secret, Channel channel, std::unique_ptr<Hub> hub,
         uint64_t deadline);
  ~Member() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] uint64_t job() const override { return job_; }
  [[nodiscard]] Secret secret_for(std::string_view purpose) const override {
    return derive_secret(secret_, purpose);
  }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) override;
  [[nodiscard]] bool lost(int rank) const noexcept override { return losses_.lost(rank); }
  [[nodiscard]] int any_lost() const noexcept override { return losses_.any(); }
  [[nodiscard]] std::string describe_loss(int rank) const override {
    return losses_.describe(rank, roster_[static_cast<size_t>(rank)]);
  }
  [[nodiscard]] std::shared_ptr<void> on_loss(std::function<void(int)> callback) override;

 private:
  struct Answer {
    pw_status status = PW_OK;
    std::string text;
    Bytes data;
  };
  struct Watch {
    int rank = 0;
    Descriptor process;      ///< a pidfd, readable once the process has ended
    uint64_t report_at = 0;  ///< once it is: when to believe it, if the hub has said nothing; 0 before
  };

  void run();
  void serve();
  void receive();
  void handle(const Message& message);
  void watch_peers();
  void hub_ended();
  void lose(int rank, wire::How how);
  void check_watches();
  void answer(uint64_t sequence, Answer given);
  [[noreturn]] void interrupted();
  void stop();

  const int rank_, size_;
  const uint64_t job_;
  const Secret secret_;  ///< of what the ranks protect between themselves; not that of the handshakes
  const int process_;    ///< a forked child is not this rank
  std::unique_ptr<Hub> hub_;
  Losses losses_;
  std::vector<wire::Identity> roster_;  ///< written before `welcomed_`
  std::vector<Watch> watches_;          ///< of the thread

  std::mutex mutex_;  ///< what follows
  std::condition_variable changed_;
  Channel channel_;
  bool welcomed_ = false, hub_alive_ = true, leaving_ = false;
  bool ended_ = false;      ///< the thread has nothing more to do
  bool hurried_ = false;    ///< leave without waiting for the hub
  bool abandoned_ = false;  ///< an all_gather was interrupted: there will be none any more
  std::optional<Answer> refused_;
  bool gathering_ = false;  ///< some thread is in all_gather(): one at a time
  uint64_t sequence_ = 0;   ///< of the all_gather under way, or the next
  std::optional<Answer> answer_;

  Wake wake_;
  std::thread thread_;
};

}  // namespace pw
