// Teams whose ranks are threads of this process: the whole rendezvous and every exchange, over real sockets.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <future>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "team/agreement.h"
#include "team/rendezvous.h"
#include "team/socket.h"

namespace pw {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

/// A broadcast between threads.
class Blackboard {
 public:
  explicit Blackboard(int size) : barrier_(size) {}
  void broadcast(int rank, std::span<std::byte> data) {
    std::unique_lock lock(mutex_);
    if (rank == 0) {
      text_.assign(data.begin(), data.end());
      written_ = true;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return written_; });
    std::copy(text_.begin(), text_.end(), data.begin());
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::byte> text_;
  bool written_ = false;
  int barrier_;
};

using Body = std::function<void(std::unique_ptr<Team>)>;

void with_team(int size, const Body& body) {
  Blackboard board(size);
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      body(make_team(rank, size, [&](std::span<std::byte> data) { board.broadcast(rank, data); }));
    }));
  for (auto& rank : ranks) rank.get();
}

int count(const char* folder) {
  int entries = 0;
  DIR* open = ::opendir(folder);
  while (::readdir(open)) ++entries;
  ::closedir(open);
  return entries;
}

pw_status outcome_of(const std::function<void()>& body, std::string* message = nullptr) {
  try {
    body();
  } catch (const Error& error) {
    if (message) *message = error.what();
    return error.status();
  }
  return PW_OK;
}

void wait_for(const std::function<bool()>& condition) {
  const uint64_t deadline = deadline_after(20 * kSecondNs);
  while (!condition() && now_ns() < deadline) ::usleep(1000);
  ASSERT_TRUE(condition());
}

TEST(Team, OneRankNeedsNoThreadAndNoSocket) {
  const int threads = count("/proc/self/task"), files = count("/proc/self/fd");
  const auto team = make_team(0, 1, [](std::span<std::byte>) { FAIL(); });
  EXPECT_EQ(count("/proc/self/task"), threads);
  EXPECT_EQ(count("/proc/self/fd"), files);
  const std::byte mine[]{std::byte{7}};
  EXPECT_EQ(team->all_gather(mine, 0), std::vector<std::byte>{std::byte{7}});
  team->barrier(0);
}

TEST(Team, GathersInRankOrder) {
  for (const int size : {2, 3, 8}) {
    std::atomic<uint64_t> job{0};
    with_team(size, [&](std::unique_ptr<Team> team) {
      EXPECT_EQ(team->size(), size);
      uint64_t none = 0;
      if (!job.compare_exchange_strong(none, team->job())) {
        EXPECT_EQ(team->job(), none);
      }
      for (uint32_t round = 0; round < 20; ++round) {
        const uint32_t mine = static_cast<uint32_t>(team->rank()) * 1000 + round;
        const auto all = team->all_gather(std::as_bytes(std::span(&mine, 1)), 20 * kSecondNs);
        ASSERT_EQ(all.size(), sizeof mine * size);
        for (int rank = 0; rank < size; ++rank) {
          uint32_t theirs;
          std::memcpy(&theirs, all.data() + sizeof theirs * rank, sizeof theirs);
          EXPECT_EQ(theirs, static_cast<uint32_t>(rank) * 1000 + round);
        }
      }
      team->barrier(20 * kSecondNs);
    });
  }
}

TEST(Team, GathersMegabytes) {
  with_team(3, [](std::unique_ptr<Team> team) {
    const std::vector<std::byte> mine(2 << 20, static_cast<std::byte>(team->rank() + 1));
    const auto all = team->all_gather(mine, 60 * kSecondNs);
    ASSERT_EQ(all.size(), 3 * mine.size());
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(all[rank * mine.size()], static_cast<std::byte>(rank + 1));
      EXPECT_EQ(all[(rank + 1) * mine.size() - 1], static_cast<std::byte>(rank + 1));
    }
    team->barrier(60 * kSecondNs);
  });
}

TEST(Team, LeavesNoThreadAndNoDescriptor) {
  with_team(2, [](std::unique_ptr<Team> team) { team->barrier(20 * kSecondNs); });
  const int files = count("/proc/self/fd");
  for (int i = 0; i < 5; ++i) with_team(3, [](std::unique_ptr<Team> team) { team->barrier(20 * kSecondNs); });
  EXPECT_EQ(count("/proc/self/fd"), files);
}

TEST(Team, ATimeoutIsKeptBehindAnotherThreadsGather) {
  std::atomic<bool> over{false};
  with_team(2, [&](std::unique_ptr<Team> team) {
    if (team->rank() == 1) {
      wait_for([&] { return over.load(); });
      team->barrier(20 * kSecondNs);
      // Should the thread that gives up have come first after all, then the other's is the second.
      outcome_of([&] { team->barrier(20 * kSecondNs); });
      return;
    }
    std::atomic<bool> started{false};
    std::thread first([&] {
      started = true;
      team->barrier(PW_FOREVER);
    });
    wait_for([&] { return started.load(); });
    EXPECT_EQ(outcome_of([&] { team->barrier(kSecondNs / 5); }), PW_TIMEOUT);
    over = true;
    first.join();
  });
}

TEST(Team, WhoLeavesIsSaidToHaveLeftAndNotToHaveDied) {
  for (const int leaver : {0, 1}) {
    with_team(3, [&](std::unique_ptr<Team> team) {
      if (team->rank() == leaver) return;
      std::atomic<int> losses{0};
      const auto handle = team->on_loss([&](int rank) { losses += rank == leaver ? 1 : 100; });
      std::string message;
      EXPECT_EQ(outcome_of([&] { team->barrier(20 * kSecondNs); }, &message), PW_PEER_LOST);
      EXPECT_NE(message.find("rank " + std::to_string(leaver)), std::string::npos) << message;
      EXPECT_NE(message.find("left"), std::string::npos) << message;
      wait_for([&] { return losses.load() % 100 == 1; });
      EXPECT_TRUE(team->lost(leaver));
      EXPECT_NE(team->describe_loss(leaver).find("left the team"), std::string::npos);
    });
  }
}

// Rank 0 is the first to leave, and the bootstrap server is its thread.
TEST(Team, TheGoodbyesThatFollowRankZerosAreHeard) {
  with_team(3, [&](std::unique_ptr<Team> team) {
    if (team->rank() == 0) return;
    wait_for([&] { return team->lost(0); });
    if (team->rank() == 1) return;
    wait_for([&] { return team->lost(1); });
    EXPECT_NE(team->describe_loss(1).find("rank 1 left the team"), std::string::npos)
        << team->describe_loss(1);
  });
}

TEST(Team, ASubscriberIsToldOfEarlierLossesAndCanStop) {
  with_team(2, [](std::unique_ptr<Team> team) {
    if (team->rank() == 1) return;
    wait_for([&] { return team->lost(1); });
    EXPECT_EQ(team->any_lost(), 1);
    std::atomic<int> losses{0};
    auto handle = team->on_loss([&](int) { ++losses; });
    wait_for([&] { return losses == 1; });
    handle.reset();
  });
}

TEST(Team, DifferentSizesOfAContributionFail) {
  with_team(2, [](std::unique_ptr<Team> team) {
    const std::vector<std::byte> mine(team->rank() + 1u);
    EXPECT_EQ(outcome_of([&] { team->all_gather(mine, 20 * kSecondNs); }), PW_INVALID_ARGUMENT);
    team->barrier(20 * kSecondNs);
    team->barrier(20 * kSecondNs);
  });
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Team, ACollectiveThatTimedOutIsTheSameOneWhenItIsRepeated) {
  std::promise<void> twice;
  with_team(2, [&](std::unique_ptr<Team> team) {
    const auto gather = [&](std::string_view text, uint64_t timeout) {
      return text_of(team->all_gather(view_of(text), timeout));
    };
    const auto parts = [&](std::string_view text, uint64_t timeout) {
      return team->all_gather_parts(CallKind::parts, view_of(text), timeout);
    };
    if (team->rank() == 0) {
      std::string message;
      for (int time = 0; time < 2; ++time)
        EXPECT_EQ(outcome_of([&] { gather("a0", kSecondNs / 20); }, &message), PW_TIMEOUT);
      EXPECT_NE(message.find("within 0.05 s"), std::string::npos) << message;
      EXPECT_EQ(outcome_of([&] { team->barrier(20 * kSecondNs); }, &message), PW_INVALID_ARGUMENT);
      EXPECT_NE(message.find("calls barrier after its all_gather of 2 bytes timed out"), std::string::npos)
          << message;
      EXPECT_EQ(outcome_of([&] { gather("b0", 20 * kSecondNs); }, &message), PW_INVALID_ARGUMENT);
      EXPECT_NE(message.find("with other bytes"), std::string::npos) << message;
      twice.set_value();
    } else {
      twice.get_future().get();
    }
    const std::string rank(1, static_cast<char>('0' + team->rank()));
    EXPECT_EQ(gather("a" + rank, 20 * kSecondNs), "a0a1");
    EXPECT_EQ(gather("b" + rank, 20 * kSecondNs), "b0b1");
    if (team->rank() == 1) {
      EXPECT_EQ(outcome_of([&] { parts("late", 0); }), PW_TIMEOUT);
    }
    const auto both = parts(team->rank() == 0 ? "x" : "late", 20 * kSecondNs);
    EXPECT_EQ(text_of(both[0]) + text_of(both[1]), "xlate");
    team->barrier(20 * kSecondNs);
  });
}

/// Rank 0 and one other, given by hand, so that they can disagree.
std::pair<std::string, std::string> meet(int size0, const std::function<void(const Ticket&)>& other,
                                         uint64_t timeout = 20 * kSecondNs) {
  const uint64_t deadline = deadline_after(timeout);
  Opening opening = open_server(size0, Reach::hosts, deadline);
  std::string second;
  std::thread thread([&, ticket = opening.ticket] { outcome_of([&] { other(ticket); }, &second); });
  std::string first;
  outcome_of([&] { join_own(size0, std::move(opening), deadline); }, &first);
  thread.join();
  return {first, second};
}

TEST(Rendezvous, ACountThatDiffersIsToldToBoth) {
  const auto [first, second] = meet(2, [](const Ticket& ticket) {
    join(1, 3, true, [&](std::string&) { return ticket; }, deadline_after(20 * kSecondNs));
  });
  EXPECT_NE(first.find("rank 1 was started as one of 3 ranks and rank 0 as one of 2"), std::string::npos)
      << first;
  EXPECT_EQ(first, second);
}

TEST(Rendezvous, TheSameRankTwiceIsToldToBoth) {
  const auto [first, second] = meet(3, [](const Ticket& ticket) {
    const auto again = [&] {
      join(1, 3, true, [&](std::string&) { return ticket; }, deadline_after(20 * kSecondNs));
    };
    std::string other;
    std::thread thread([&] { outcome_of(again, &other); });
    std::string mine;
    outcome_of(again, &mine);
    thread.join();
    throw Error(PW_SYSTEM, mine);
  });
  EXPECT_NE(first.find("two processes joined as rank 1"), std::string::npos) << first;
  EXPECT_EQ(first, second);
}

TEST(Rendezvous, AWrongSecretIsRefusedOnBothSides) {
  const auto [first, second] = meet(
      2,
      [](Ticket ticket) {
        ticket.secret[3] ^= std::byte{1};
        join(1, 2, true, [&](std::string&) { return ticket; }, deadline_after(20 * kSecondNs));
      },
      kSecondNs / 2);
  EXPECT_NE(second.find("does not know this job's secret"), std::string::npos) << second;
  EXPECT_NE(first.find("1 of 2 ranks did not join the team in time (rank 1)"), std::string::npos) << first;
}

TEST(Rendezvous, TcpCarriesATeamAsWell) {
  const uint64_t deadline = deadline_after(20 * kSecondNs);
  Opening opening = open_server(2, Reach::hosts, deadline);
  Ticket ticket = opening.ticket;
  ticket.addresses.erase(ticket.addresses.begin());  // the Unix socket
  std::thread other(
      [&] { join(1, 2, true, [&](std::string&) { return ticket; }, deadline)->barrier(20 * kSecondNs); });
  join_own(2, std::move(opening), deadline)->barrier(20 * kSecondNs);
  other.join();
}

TEST(Rendezvous, GarbageAndSilenceDoNotKeepTheTeamFromMeeting) {
  const uint64_t deadline = deadline_after(20 * kSecondNs);
  Opening opening = open_server(2, Reach::host, deadline);
  const Descriptor silent = connect_to(opening.ticket.addresses[0], deadline);
  const Descriptor noisy = connect_to(opening.ticket.addresses[0], deadline);
  ASSERT_EQ(::write(noisy.get(), "GET / HTTP/1.0\r\n\r\n", 18), 18);
  Ticket ticket = opening.ticket;
  std::thread other(
      [&] { join(1, 2, true, [&](std::string&) { return ticket; }, deadline)->barrier(20 * kSecondNs); });
  join_own(2, std::move(opening), deadline)->barrier(20 * kSecondNs);
  other.join();
}

TEST(Rendezvous, AnAddressInUseIsNamed) {
  Ticket ticket;
  ticket.addresses = {{false, "127.0.0.1", "0"}};
  std::vector<Address> reachable;
  const Descriptor taken = listen_on_any_port(reachable);
  ticket.addresses[0].port = reachable[0].port;
  std::string message;
  EXPECT_EQ(outcome_of([&] { open_server(2, ticket, 0); }, &message), PW_SYSTEM);
  EXPECT_NE(message.find("cannot listen at tcp:127.0.0.1:" + reachable[0].port), std::string::npos)
      << message;
  EXPECT_NE(message.find("Another process uses it"), std::string::npos) << message;
}

// The others wait in the broadcast, which has no timeout of ours: they must hear of it.
TEST(Rendezvous, ASettingThatRankZeroCannotUseIsToldToAll) {
  ::setenv("PEERWAY_TIMEOUT", "soon", 1);
  std::string ticket_text;
  const auto broadcast = [&](std::span<std::byte> data) {
    ticket_text.assign(reinterpret_cast<const char*>(data.data()), data.size());
  };
  EXPECT_EQ(outcome_of([&] { make_team(0, 2, broadcast); }), PW_BAD_CONFIG);
  ::unsetenv("PEERWAY_TIMEOUT");
  ASSERT_FALSE(ticket_text.empty());
  const Ticket ticket = parse_ticket(ticket_text, "the broadcast");
  EXPECT_EQ(ticket.status, PW_BAD_CONFIG);
  EXPECT_NE(ticket.problem.find("'soon'"), std::string::npos) << ticket.problem;
}

TEST(Rendezvous, RankAndSizeAreChecked) {
  const auto never = [](std::span<std::byte>) { FAIL(); };
  std::string message;
  EXPECT_EQ(outcome_of([&] { make_team(2, 2, never); }, &message), PW_INVALID_ARGUMENT);
  EXPECT_NE(message.find("rank 2 is not from 0 to 1"), std::string::npos) << message;
  EXPECT_EQ(outcome_of([&] { make_team(-1, 2, never); }), PW_INVALID_ARGUMENT);
  EXPECT_EQ(outcome_of([&] { make_team(0, 0, never); }), PW_INVALID_ARGUMENT);
}

// ---- exchanges: ranks talk to partners alone ----

PeerMessages messages_to(const std::vector<int>& ranks, const std::string& text) {
  const ByteView view = view_of(text);
  PeerMessages messages;
  for (const int rank : ranks) messages.emplace_back(rank, std::vector<std::byte>(view.begin(), view.end()));
  return messages;
}

std::string only_text(const PeerMessages& messages) {
  EXPECT_EQ(messages.size(), 1u);
  const auto& bytes = messages.at(0).second;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Exchange, PartnersExchangeAndOthersDoNotWait) {
  with_team(5, [](std::unique_ptr<Team> team) {
    const int rank = team->rank(), partner = rank ^ 1;
    for (int round = 0; round < 5; ++round) {
      run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
        if (rank == 4) return;  // nobody's partner
        for (const char* part : {"a", "b", "c"})
          EXPECT_EQ(only_text(exchange.exchange(messages_to({partner}, std::to_string(rank) + part),
                                                20 * kSecondNs)),
                    std::to_string(partner) + part);
      });
    }
    team->barrier(20 * kSecondNs);
  });
}

TEST(Exchange, AMegabyteGoesBothWays) {
  with_team(2, [](std::unique_ptr<Team> team) {
    run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
      const std::string mine(1 << 20, static_cast<char>('a' + team->rank()));
      EXPECT_EQ(only_text(exchange.exchange(messages_to({1 - team->rank()}, mine), 60 * kSecondNs)),
                std::string(1 << 20, static_cast<char>('b' - team->rank())));
    });
    team->barrier(20 * kSecondNs);
  });
}

TEST(Exchange, WhatOneRankCannotDoEndsItForAllWithItsMessage) {
  with_team(4, [](std::unique_ptr<Team> team) {
    const int rank = team->rank();
    std::string message;
    const pw_status ended = outcome_of(
        [&] {
          run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
            if (rank == 3) throw std::out_of_range("seven");  // before anybody knows whose partner it is
            exchange.exchange(messages_to({(rank + 1) % 3}, "x"), 20 * kSecondNs);
            exchange.exchange(messages_to({3}, "x"), 20 * kSecondNs);
          });
        },
        &message);
    EXPECT_EQ(ended, PW_INTERNAL);
    EXPECT_EQ(message, rank == 3 ? "seven" : "rank 3 cannot prepare its plan: seven");
    run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
      EXPECT_EQ(only_text(exchange.exchange(messages_to({rank ^ 1}, "x"), 20 * kSecondNs)), "x");
    });
    team->barrier(20 * kSecondNs);
  });
}

TEST(Exchange, AnObjectionReachesWhoHadAllItsLetters) {
  with_team(3, [](std::unique_ptr<Team> team) {
    std::atomic<bool> aborted{false};
    if (team->rank() == 0) {
      EXPECT_EQ(outcome_of([&] {
                  run_exchange(*team, CallKind::plan, [&](Exchange&) {
                    team->barrier(20 * kSecondNs);
                    throw Error(PW_DENIED, "no");
                  });
                }),
                PW_DENIED);
    } else {
      const auto exchange = run_exchange(*team, CallKind::plan, [](Exchange&) {});
      exchange->on_abort([&](const Error& why) { aborted = why.status() == PW_DENIED; });
      team->barrier(20 * kSecondNs);
      wait_for([&] { return aborted.load(); });
    }
    team->barrier(20 * kSecondNs);
  });
}

TEST(Exchange, ARankThatIsNoPartnerSaysSo) {
  with_team(2, [](std::unique_ptr<Team> team) {
    if (team->rank() == 1) {
      run_exchange(*team, CallKind::plan, [](Exchange&) {});
      team->barrier(20 * kSecondNs);
    } else {
      std::string message;
      EXPECT_EQ(outcome_of(
                    [&] {
                      run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
                        team->barrier(20 * kSecondNs);  // the other is through with the exchange
                        exchange.exchange(messages_to({1}, "x"), 20 * kSecondNs);
                      });
                    },
                    &message),
                PW_INVALID_ARGUMENT);
      EXPECT_NE(message.find("rank 1 does not expect rank 0"), std::string::npos) << message;
    }
    team->barrier(20 * kSecondNs);
  });
}

TEST(Exchange, APartnerThatLeavesEndsIt) {
  with_team(3, [](std::unique_ptr<Team> team) {
    if (team->rank() == 1) return;  // leaves the team
    std::string message;
    EXPECT_EQ(outcome_of(
                  [&] {
                    run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
                      exchange.exchange(messages_to({team->rank() == 0 ? 2 : 1}, "x"), 20 * kSecondNs);
                    });
                  },
                  &message),
              PW_PEER_LOST);
    EXPECT_NE(message.find("rank 1 left the team"), std::string::npos) << message;
  });
}

TEST(Exchange, GoesOnWhenRank0HasLeft) {
  with_team(4, [](std::unique_ptr<Team> team) {
    const int rank = team->rank();
    if (rank == 0) return;
    wait_for([&] { return team->lost(0); });
    run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
      EXPECT_EQ(only_text(exchange.exchange(messages_to({rank == 3 ? 3 : 3 - rank}, "x"), 20 * kSecondNs)),
                "x");
    });
    run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
      const std::vector<int> others = rank == 1   ? std::vector{2, 3}
                                      : rank == 2 ? std::vector{1, 3}
                                                  : std::vector{1, 2};
      EXPECT_EQ(exchange.exchange(messages_to(others, "x"), 20 * kSecondNs).size(), 2u);
    });
  });
}

// Ranks 2 and 5, next to the one that objects, are through with the exchange; the others hear of it from
// them.
TEST(Exchange, WithoutRank0AnObjectionReachesThoseWhoAreFarAway) {
  std::atomic<int> begun{0}, through{0};
  with_team(6, [&](std::unique_ptr<Team> team) {
    const int rank = team->rank();
    if (rank == 0) return;
    wait_for([&] { return team->lost(0); });
    auto exchange = team->begin_exchange(CallKind::plan);
    if (rank == 2 || rank == 5) exchange.reset();
    ++begun;
    if (rank == 1) {
      wait_for([&] { return begun == 5; });
      exchange->abort(Error(PW_DENIED, "no"));
    }
    if (rank == 3 || rank == 4) {
      std::atomic<bool> aborted{false};
      exchange->on_abort([&](const Error& why) { aborted = why.status() == PW_DENIED; });
      wait_for([&] { return aborted.load(); });
      exchange.reset();
    }
    ++through;
    wait_for([&] { return through == 5; });  // nobody leaves before
  });
}

// Some have not aborted yet that rank 0 has left when the reason is made, and no two ranks are connected.
TEST(Exchange, AnObjectionIsNotLostBetweenTheHubAndTheRing) {
  std::atomic<int> aborted{0};
  with_team(5, [&](std::unique_ptr<Team> team) {
    const int rank = team->rank();
    if (rank == 0) return;
    if (rank == 1) {
      wait_for([&] { return team->lost(0); });
      ::usleep(1'900'000 +
               static_cast<useconds_t>(now_ns() % 200'000));  // so long rank 0's bootstrap server goes on
    }
    EXPECT_EQ(outcome_of([&] {
                run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
                  if (rank == 1) throw Error(PW_DENIED, "no");
                  exchange.exchange(messages_to({1}, "x"), 20 * kSecondNs);
                });
              }),
              PW_DENIED);
    ++aborted;
    wait_for([&] { return aborted == 4; });  // nobody leaves before
  });
}

// Rank 1 takes back what it had offered because rank 0 objected; rank 2, which is no partner of rank 0, fails
// because of that, and must not call it its own fault.
TEST(Exchange, WhoFailsBecauseAPartnerEndedSaysWhatThatOneHadHeard) {
  constexpr int kRounds = 20;
  std::vector<std::atomic<bool>> taken_back(kRounds);
  with_team(4, [&](std::unique_ptr<Team> team) {
    const int rank = team->rank();
    for (auto& round : taken_back) {
      std::string message;
      outcome_of(
          [&] {
            run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
              const std::vector<int> partners[] = {{1}, {0, 2}, {1}, {}};
              if (rank == 3) return;
              exchange.exchange(messages_to(partners[rank], "x"), 20 * kSecondNs);
              if (rank == 0) throw Error(PW_DENIED, "no");
              if (rank == 1) exchange.exchange(messages_to({0}, "x"), 20 * kSecondNs);
              while (!round) ::sched_yield();
              throw Error(PW_STALE_KEY, "the region was closed");
            });
          },
          &message);
      if (rank == 1) round = true;
      EXPECT_EQ(message, rank == 0 ? "no" : rank == 3 ? "" : "rank 0 cannot prepare its plan: no");
    }
    team->barrier(20 * kSecondNs);
  });
}

// ---- ranks that call different collectives ----

/// A call with a partner where the collective has partners.
std::function<void(Team&)> call_of(CallKind kind, int partner) {
  return [=](Team& team) {
    const auto talk = [&](Exchange& exchange) {
      exchange.exchange(messages_to({partner}, "x"), 20 * kSecondNs);
    };
    const std::vector<int> pair{0, 1};
    if (kind == CallKind::barrier)
      team.barrier(20 * kSecondNs);
    else if (through_server(kind))
      team.all_gather_parts(kind, {}, 20 * kSecondNs);
    else if (kind == CallKind::plan_among)
      run_exchange(team, team.begin_exchange_among(kind, pair), kind, talk);
    else
      run_exchange(team, kind, talk);
  };
}

// Rank 2 calls what rank 0 does, and nobody but the bootstrap server sees that it is not what rank 1 calls.
TEST(Team, DifferentCollectivesEndForAllRanksWithBothNames) {
  const CallKind kinds[] = {CallKind::barrier, CallKind::parts, CallKind::context, CallKind::plan,
                            CallKind::halo};
  with_team(3, [&](std::unique_ptr<Team> team) {
    const int rank = team->rank();
    for (const CallKind first : kinds)
      for (const CallKind second : kinds) {
        if (first == second) continue;
        const CallKind kind = rank == 1 ? second : first;
        std::string message;
        const pw_status ended = outcome_of([&] { call_of(kind, rank == 2 ? 2 : 1 - rank)(*team); }, &message);
        if (rank == 2 && ended == PW_OK && !through_server(kind)) continue;  // it had no partner
        EXPECT_EQ(ended, PW_INVALID_ARGUMENT);
        // The message names the calls of ranks 0 and 1, or of 1 and 2.
        EXPECT_NE(message.find("rank 1 is in " + name_of(CollectiveCall{second, 0})), std::string::npos)
            << message;
        EXPECT_NE(message.find(" is in " + name_of(CollectiveCall{first, 0})), std::string::npos) << message;
      }
    team->barrier(20 * kSecondNs);
    call_of(CallKind::plan, rank == 2 ? 2 : 1 - rank)(*team);
  });
}

TEST(Team, ACollectiveOfSomeRanksDoesNotPassOneOfAll) {
  for (const CallKind full : {CallKind::barrier, CallKind::parts, CallKind::plan}) {
    with_team(3, [&](std::unique_ptr<Team> team) {
      const int rank = team->rank();
      const auto of_all = call_of(full, rank == 2 ? 2 : 1 - rank);
      const auto of_some = call_of(CallKind::plan_among, 1 - rank);
      std::vector<std::function<void(Team&)>> calls{of_all, of_some};
      if (rank == 1) calls = {of_some, of_all};
      if (rank == 2) calls = {of_all};
      for (const auto& call : calls) {
        std::string message;
        const pw_status ended = outcome_of([&] { call(*team); }, &message);
        if (rank == 2 && ended == PW_OK) continue;  // it had no partner
        EXPECT_EQ(ended, PW_INVALID_ARGUMENT);
        EXPECT_NE(message.find(std::string("rank 0 is in ") + name_of(full)), std::string::npos) << message;
        EXPECT_NE(message.find("rank 1 is in prepare_among of a plan"), std::string::npos) << message;
      }
      team->barrier(20 * kSecondNs);
      if (rank != 2) of_some(*team);
      of_all(*team);
    });
  }
}

TEST(Team, AMeetingThatTimedOutIsNotTakenForAnotherCollective) {
  for (const CallKind next : {CallKind::barrier, CallKind::parts, CallKind::halo}) {
    std::promise<void> late;
    std::shared_future<void> is_late = late.get_future().share();
    with_team(2, [&](std::unique_ptr<Team> team) {
      const int rank = team->rank();
      const auto prepare = [&](uint64_t timeout) {
        run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
          for (const char* part : {"a", "b"}) exchange.exchange(messages_to({1 - rank}, part), timeout);
        });
      };
      std::string message;
      if (rank == 0) {
        EXPECT_EQ(outcome_of([&] { prepare(kSecondNs / 20); }), PW_TIMEOUT);
        late.set_value();
        EXPECT_EQ(outcome_of([&] { call_of(next, 1)(*team); }, &message), PW_INVALID_ARGUMENT);
      } else {
        is_late.get();
        EXPECT_EQ(outcome_of([&] { prepare(20 * kSecondNs); }, &message), PW_TIMEOUT);
        EXPECT_NE(message.find("rank 0 cannot prepare its plan"), std::string::npos) << message;
        EXPECT_EQ(outcome_of([&] { prepare(20 * kSecondNs); }, &message), PW_INVALID_ARGUMENT);
      }
      EXPECT_NE(message.find(std::string("rank 0 is in ") + name_of(next)), std::string::npos) << message;
      EXPECT_NE(message.find("rank 1 is in prepare of a plan"), std::string::npos) << message;
      prepare(20 * kSecondNs);
      team->barrier(20 * kSecondNs);
    });
  }
}

TEST(Team, NoMeetingBeginsBeforeAnAllGatherThatTimedOutIsRepeated) {
  std::promise<void> refused;
  with_team(2, [&](std::unique_ptr<Team> team) {
    const std::vector<int> both{0, 1};
    if (team->rank() == 0) {
      EXPECT_EQ(outcome_of([&] { team->barrier(0); }), PW_TIMEOUT);
      std::string message;
      EXPECT_EQ(outcome_of([&] { team->begin_exchange(CallKind::plan); }, &message), PW_INVALID_ARGUMENT);
      EXPECT_NE(message.find("calls prepare of a plan after its barrier timed out"), std::string::npos)
          << message;
      EXPECT_EQ(outcome_of([&] { team->begin_exchange_among(CallKind::plan_among, both); }),
                PW_INVALID_ARGUMENT);
      refused.set_value();
    } else {
      refused.get_future().get();
    }
    team->barrier(20 * kSecondNs);
    call_of(CallKind::plan, 1 - team->rank())(*team);
    call_of(CallKind::plan_among, 1 - team->rank())(*team);
  });
}

TEST(Team, WithoutRank0DifferentMeetingsEndAndTheNextIsInStep) {
  std::atomic<int> through{0};
  with_team(4, [&](std::unique_ptr<Team> team) {
    const int rank = team->rank(), partner = rank == 3 ? 3 : 3 - rank;
    if (rank == 0) return;
    wait_for([&] { return team->lost(0); });
    EXPECT_EQ(outcome_of([&] { team->barrier(20 * kSecondNs); }), PW_PEER_LOST);
    if (rank != 3) {
      std::string message;
      const auto call = call_of(rank == 1 ? CallKind::halo : CallKind::plan, partner);
      EXPECT_EQ(outcome_of([&] { call(*team); }, &message), PW_INVALID_ARGUMENT);
      // Rank 0's bootstrap server, which may still be there, compares with rank 3 as well.
      EXPECT_NE(message.find("rank 1 is in creation of a halo where rank "), std::string::npos) << message;
      EXPECT_NE(message.find(" is in prepare of a plan"), std::string::npos) << message;
    } else {
      team->begin_exchange(CallKind::plan);
    }
    call_of(CallKind::plan, partner)(*team);
    ++through;
    wait_for([&] { return through == 3; });  // nobody leaves before
  });
}

TEST(Exchange, WhatWasWrittenBeforeLeavingArrives) {
  with_team(4, [](std::unique_ptr<Team> team) {
    const int rank = team->rank(), partner = rank ^ 1;
    run_exchange(*team, CallKind::plan, [&](Exchange& exchange) {
      const std::string mine(rank % 2 == 0 ? 1 : 2 << 20, 'x');
      EXPECT_EQ(only_text(exchange.exchange(messages_to({partner}, mine), 60 * kSecondNs)).size(),
                rank % 2 == 0 ? 2u << 20 : 1u);
    });
  });
}

}  // namespace
}  // namespace pw
