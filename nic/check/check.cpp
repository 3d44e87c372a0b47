#include "nic/check/check.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/hash.h"
#include "base/status.h"
#include "nic/check/tests.h"

namespace pw::nic::check {
namespace {

constexpr const char* kSetupName = "open, register, connect";

std::vector<Test> all_tests() {
  std::vector<Test> all;
  for (const auto tests :
       {tests_of_setup(), tests_of_data(), tests_of_words(), tests_of_order(), tests_of_ends(),
        tests_of_memory(), tests_of_extras(), tests_of_load(), tests_of_death()})
    all.insert(all.end(), tests.begin(), tests.end());
  return all;
}

std::string listed() {
  std::string names;
  for (const std::string& name : test_names()) names += (names.empty() ? "" : "; ") + name;
  return names;
}

std::vector<Test> chosen(const std::vector<std::string>& names) {
  std::vector<Test> tests = all_tests();
  for (const std::string& name : names)
    if (name != kSetupName &&
        std::ranges::none_of(tests, [&](const Test& test) { return name == test.name; }))
      throw Error(PW_INVALID_ARGUMENT, format("nic-check has no test '{}'; there are: {}", name, listed()));
  if (!names.empty())
    std::erase_if(tests,
                  [&](const Test& test) { return std::ranges::find(names, test.name) == names.end(); });
  return tests;
}

// ---- the near end ----

int reporting = -1;
uint32_t running = kSetup;

[[noreturn]] void near_hangs(const char* entry) {
  send(reporting, TestReport{running, true, Outcome::broken,
                             format("{}() has not returned for {:.0f} s; no call waits without end", entry,
                                    Watchdog::kHung_s)});
  _exit(0);
}

/// Reports the outcome. After a finding the processes are useless and exit. Nothing is freed, because the
/// plugin may still use it.
void report(Outcome outcome, std::string evidence) {
  send(reporting, TestReport{running, true, outcome, std::move(evidence)});
  if (outcome != Outcome::ok && outcome != Outcome::absent) _exit(0);
}

/// Calls `body` and reports the outcome. Does not return if that is a finding.
template <typename Body>
void judge(Body&& body) {
  try {
    report(Outcome::ok, body());
  } catch (const Broken& finding) {
    report(Outcome::broken, finding.what());
  } catch (const Inconclusive& finding) {
    report(Outcome::inconclusive, finding.what());
  } catch (const Absent& finding) {
    report(Outcome::absent, finding.what());
  }
}

void run_near_end(Stand& stand, const std::vector<Test>& tests, uint32_t first) {
  reporting = stand.report.get();
  running = kSetup;
  Watchdog::start(near_hangs);
  try {
    // Never unloaded, because its threads may run until the process ends.
    static const auto held = Plugin::load(stand.options.plugin);
  } catch (const Error& error) {
    send(reporting, TestReport{kNoPlugin, true, Outcome::broken, error.what()});
    return;
  }
  std::optional<NearEnd> near;
  judge([&] {
    try {
      near.emplace(stand);
    } catch (const WrongOptions& refusal) {
      send(reporting, TestReport{kNoPlugin, true, Outcome::broken, refusal.what()});
      _exit(0);
    }
    return format("{} processes are connected, each of which registered memory", kRanks);
  });
  for (uint32_t i = first; i < tests.size(); ++i) {
    running = i;
    send(reporting, TestReport{i, false, Outcome::ok, {}});
    near->random = Random(hash_of(tests[i].name, stand.options.seed));
    near->share_s = tests[i].share_s * stand.options.effort;
    judge([&] { return tests[i].run(*near); });
    if (tests[i].last) break;
  }
  running = kClosing;
  send(reporting, TestReport{kClosing, false, Outcome::ok, {}});
  judge([&] {
    near->close();
    return std::string();
  });
  _exit(0);
}

// ---- the supervisor ----

class Supervisor {
 public:
  Supervisor(const Options& options, const std::function<void(const Verdict&)>& tell)
      : options_(options), tell_(tell), tests_(chosen(options.only)) {}

  void run() {
    do {
      const uint32_t before = next_;
      one_stand();
      if (stopped_ || (next_ == before && next_ < tests_.size())) return;
    } while (next_ < tests_.size());
  }

 private:
  void one_stand() {
    // Endpoints of a stand that was killed may remain for a while, so the next stand gets another job number.
    Stand stand(options_, hash_of(format("{} {}", getpid(), ++stands_), options_.seed ^ now_ns()),
                [this](Stand& here) { run_near_end(here, tests_, next_); });
    uint32_t begun = kSetup;
    bool ended = false;
    for (TestReport report; receive(stand.report.get(), report);) {
      begun = report.test, ended = report.ended;
      if (ended) take(report);
    }
    const std::string how = stand.how_near_ended();
    if (ended) return;  // it has reported already
    take({begun, true, Outcome::broken,
          (how.empty() ? "its process exited: a plugin may not do that" : how) + "; did the plugin crash?"});
  }

  void take(const TestReport& report) {
    if (report.test == kNoPlugin) throw Error(PW_UNAVAILABLE, report.evidence);
    if (report.test == kSetup) {
      stopped_ = report.outcome != Outcome::ok;
      if (stopped_ || !std::exchange(set_up_, true)) tell_({kSetupName, report.outcome, report.evidence});
      return;
    }
    if (report.test == kClosing) {
      if (report.outcome != Outcome::ok) tell_({"close", report.outcome, report.evidence});
      return;
    }
    next_ = report.test + 1;
    tell_({tests_[report.test].name, report.outcome, report.evidence});
  }

  const Options& options_;
  const std::function<void(const Verdict&)>& tell_;
  const std::vector<Test> tests_;
  uint32_t next_ = 0;
  uint32_t stands_ = 0;
  bool set_up_ = false, stopped_ = false;
};

}  // namespace

double usual_seconds() {
  double sum = 0;
  for (const Test& test : all_tests()) sum += test.share_s;
  return sum;
}

std::vector<std::string> test_names() {
  std::vector<std::string> names{kSetupName};
  for (const Test& test : all_tests()) names.emplace_back(test.name);
  return names;
}

void check(const Options& options, const std::function<void(const Verdict&)>& tell) {
  longest_wait_ns = static_cast<uint64_t>(options.patience_s * 1e9);
  Supervisor(options, tell).run();
}

}  // namespace pw::nic::check
