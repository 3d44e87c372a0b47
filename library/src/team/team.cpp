#include "team/team.h"

namespace pw {

namespace {

/// The meeting of a rank with itself, where there are no others.
class Alone final : public Meeting {
 public:
  Letters exchange(const Letters& mine, uint64_t) override { return mine; }
  void object(const Error&) override {}
  void on_objection(std::function<void(const Error&)>) override {}
};

}  // namespace

std::unique_ptr<Meeting> Team::meet(Collective /*kind*/) { return std::make_unique<Alone>(); }

std::unique_ptr<Meeting> Team::meet_among(Collective kind, std::span<const int> /*ranks*/) {
  return meet(kind);
}

}  // namespace pw
