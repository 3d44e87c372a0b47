// The state of a process while the program runs: team, context, messages, sets and the executing ranks.
#pragma once

#include <optional>
#include <vector>

#include "peerway/peerway.hpp"
#include "peerway/xacc/acc.h"
#include "xacc/runtime/program/mail.h"
#include "xacc/runtime/program/sets.h"

namespace pwx {

class Program {
 public:
  Program();

  peerway::Team team;
  peerway::Context context;
  Mail mail;
  Sets sets;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// The processes that execute: all, or those of the innermost task.
  [[nodiscard]] const Set& executing() const { return *executing_.back(); }
  [[nodiscard]] const Set& all() const { return *executing_.front(); }
  void push(const Set& set) { executing_.push_back(&set); }
  void pop() { executing_.pop_back(); }

  /// The set that a directive names; NULL is the executing set.
  const Set& set_of(const pwx_ref* ref) { return ref == nullptr ? executing() : sets.of(*ref); }

 private:
  int rank_, size_;
  std::vector<const Set*> executing_;
};

/// The program, which the first call starts. Throws what a team or context throws.
Program& program();
/// Null before the program has begun.
Program* program_if_begun();

/// The kernels of all source files.
std::vector<pwx_kernel*> kernels_of_units();

/// Sets up the nodes, templates and arrays of all source files, in the order of their text.
void set_up_units();

/// Functions that upper layers register for the end of the program. Both are collective over all ranks.
struct Ending {
  void (*before_barrier)();  ///< other ranks may still communicate with this one
  void (*after_barrier)();   ///< no rank communicates any more: memory is freed without notice to others
};
void set_ending(const Ending& ending);

/// Whether all communication has ended, so that memory is freed without notice to others.
bool ended();

}  // namespace pwx
