#include "xacc/runtime/program/program.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/program/threads.h"

namespace pwx {
namespace {

Program* the_program = nullptr;
bool has_ended = false;
bool is_forked_child = false;  ///< this process is a forked child of a rank
pwx_unit* units = nullptr;
Ending ending{[] {}, [] {}};

constexpr auto kTurn = std::chrono::milliseconds(150);

/// Ranks that precede this one in the executing set may find the same error: the first prints it, and
/// notifies the others.
bool error_was_printed_by_another() {
  const Program* const program = program_if_begun();
  if (program == nullptr) return false;
  const auto deadline =
      std::chrono::steady_clock::now() + std::clamp(program->executing().index, 0, 4) * kTurn;
  while (!program->mail.goodbye_heard()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

void notify_of_printed_error() {
  if (Program* const program = program_if_begun()) program->mail.say_goodbye();
}

/// Registered with on_exit. A rank that ends waits here for the others, unless it has failed: they may wait
/// for it in vain, and the launcher ends them. A forked child of a rank does nothing, and leaves all to its
/// parent.
void end(int status, void* /*unused*/) {
  if (the_program == nullptr || has_ended || is_forked_child || status != 0) return;
  static const pwx_where at_exit{"exit", 0};
  guarded(&at_exit, [] {
    ending.before_barrier();
    the_program->team.barrier();
    has_ended = true;
    ending.after_barrier();
    delete the_program;
    the_program = nullptr;
  });
}

}  // namespace

Program::Program()
    : team(peerway::Team::from_launcher()),
      context(team),
      mail(team, context),
      sets(team.rank()),
      rank_(team.rank()),
      size_(team.size()) {
  std::vector<int> ranks(static_cast<size_t>(size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  executing_.push_back(&sets.of(ranks));
  share_cpus(team);
}

Program& program() {
  if (is_forked_child)
    throw Failure("this process is a child that a rank forked; only the rank executes directives");
  if (the_program == nullptr) {
    if (has_ended) throw Failure("the program has ended; no directive can be executed any more");
    agree_on_errors_by({error_was_printed_by_another, notify_of_printed_error});
    the_program = new Program;
    ::pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
    ::on_exit(end, nullptr);
  }
  return *the_program;
}

Program* program_if_begun() { return is_forked_child ? nullptr : the_program; }

std::vector<pwx_kernel*> kernels_of_units() {
  std::vector<pwx_kernel*> all;
  for (const pwx_unit* unit = units; unit != nullptr; unit = unit->next)
    for (pwx_kernel* const* kernel = unit->kernels; kernel != nullptr && *kernel != nullptr; ++kernel)
      all.push_back(*kernel);
  return all;
}

void set_up_units() {
  for (const pwx_unit* unit = units; unit != nullptr; unit = unit->next)
    if (unit->set_up != nullptr) unit->set_up();
}

void set_ending(const Ending& of_layers_above) { ending = of_layers_above; }

bool ended() { return has_ended; }

}  // namespace pwx

extern "C" void pwx_unit_add(pwx_unit* unit) {
  pwx_unit** last = &pwx::units;
  while (*last != nullptr) last = &(*last)->next;
  unit->next = nullptr;
  *last = unit;
}
