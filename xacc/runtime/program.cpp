#include "xacc/runtime/program.h"

#include <pthread.h>

#include <cstdlib>
#include <numeric>

#include "xacc/runtime/arrays.h"
#include "xacc/runtime/collective.h"
#include "xacc/runtime/failure.h"
#include "xacc/runtime/reach.h"
#include "xacc/runtime/threads.h"

namespace pwx {
namespace {

Program* the_program = nullptr;
bool has_ended = false;
bool is_forked_child = false;  ///< of a rank, which it is not itself
pwx_unit* units = nullptr;

/// atexit. A rank that calls exit with others still at work waits for them here. A child that it forked is no
/// rank, and leaves all to its parent.
void end() {
  if (the_program == nullptr || has_ended || is_forked_child) return;
  static const pwx_where at_exit{"exit", 0};
  guarded(&at_exit, [] {
    close_key_table();
    the_program->team.barrier();
    has_ended = true;
    free_everything();
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
    the_program = new Program;
    ::pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
    std::atexit(end);
  }
  return *the_program;
}

Program* program_if_begun() { return is_forked_child ? nullptr : the_program; }

std::vector<pwx_kernel*> kernels_of_units() {
  std::vector<pwx_kernel*> all;
  for (const pwx_unit* unit = units; unit != nullptr; unit = unit->next)
    for (pwx_kernel* const* one = unit->kernels; one != nullptr && *one != nullptr; ++one)
      all.push_back(*one);
  return all;
}

bool ended() { return has_ended; }

}  // namespace pwx

extern "C" {

void pwx_unit_add(pwx_unit* unit) {
  pwx_unit** last = &pwx::units;
  while (*last != nullptr) last = &(*last)->next;
  unit->next = nullptr;
  *last = unit;
}

void pwx_begin(int* /*argc*/, char*** /*argv*/) {
  static const pwx_where start{"start", 0};
  pwx::guarded(&start, [] {
    pwx::program();
    pwx::make_key_table();
    for (const pwx_unit* unit = pwx::units; unit != nullptr; unit = unit->next)
      if (unit->set_up != nullptr) unit->set_up();
    if (pwx::arrays_are_reached())
      pwx::barrier(pwx::program(), pwx::program().all());  // arrays of files are there
  });
}

}  // extern "C"
