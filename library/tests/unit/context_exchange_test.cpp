// How often the ranks of a context exchange something when it is made.
#include <gtest/gtest.h>

#include "context/context.h"
#include "team/team.h"

namespace pw {
namespace {

/// A team of one that counts its exchanges, and may be wrong about the hosts.
class Counted final : public Team {
 public:
  explicit Counted(bool several_hosts) : several_hosts_(several_hosts) {}
  [[nodiscard]] int rank() const override { return team_->rank(); }
  [[nodiscard]] int size() const override { return team_->size(); }
  [[nodiscard]] uint64_t job() const override { return team_->job(); }
  [[nodiscard]] Secret secret_for(std::string_view purpose) const override {
    return team_->secret_for(purpose);
  }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) override {
    ++exchanges;
    return team_->all_gather(mine, timeout_ns);
  }
  std::vector<std::vector<std::byte>> all_gather_parts(CallKind kind, std::span<const std::byte> mine,
                                                       uint64_t timeout_ns) override {
    ++exchanges;
    return team_->all_gather_parts(kind, mine, timeout_ns);
  }
  [[nodiscard]] bool several_hosts() const override { return several_hosts_; }
  [[nodiscard]] bool lost(int rank) const noexcept override { return team_->lost(rank); }
  [[nodiscard]] int any_lost() const noexcept override { return team_->any_lost(); }
  [[nodiscard]] std::string describe_loss(int rank) const override { return team_->describe_loss(rank); }
  [[nodiscard]] std::shared_ptr<void> on_loss(std::function<void(int)> callback) override {
    return team_->on_loss(std::move(callback));
  }

  int exchanges = 0;

 private:
  std::unique_ptr<Team> team_ = make_team(0, 1, [](std::span<std::byte>) {});
  const bool several_hosts_;
};

TEST(ContextExchange, OneIsEnough) {
  Counted team(false);
  const Context context(team);
  EXPECT_EQ(team.exchanges, 1);
}

TEST(ContextExchange, ASecondOneCorrectsWhatARankHadAssumed) {
  Counted team(true);
  const Context context(team);
  EXPECT_EQ(team.exchanges, 2);
}

}  // namespace
}  // namespace pw
