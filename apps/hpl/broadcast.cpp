#include "broadcast.h"

#include <algorithm>
#include <stdexcept>

namespace hpl {

namespace {

constexpr const char* kNames[] = {"1ring", "1ringM", "2ring", "2ringM", "", "", "tree", "star"};

/// A chain from the root over the places `first` to `last`.
void chain(Links& links, int first, int last, int place) {
  if (first > last) return;
  if (place == 0) links.children.push_back(first);
  if (place < first || place > last) return;
  links.parent = place == first ? 0 : place - 1;
  if (place < last) links.children.push_back(place + 1);
}

/// Binomial: in round r the places below 2^r send 2^r further.
void tree(Links& links, int count, int place) {
  int round = 1;
  for (; round <= place; round *= 2) links.parent = place - round;
  for (; place + round < count; round *= 2) links.children.push_back(place + round);
}

}  // namespace

const std::vector<Variant>& all_variants() {
  static const std::vector<Variant> all{Variant::ring,      Variant::ring_modified,
                                        Variant::two_rings, Variant::two_rings_modified,
                                        Variant::tree,      Variant::star};
  return all;
}

std::string to_string(Variant variant) { return kNames[static_cast<int>(variant)]; }

Variant variant_of(const std::string& name) {
  for (const Variant variant : all_variants())
    if (to_string(variant) == name) return variant;
  throw std::invalid_argument(name);
}

Links links(Variant variant, int count, int place) {
  Links made{-1, {}};
  const bool modified = variant == Variant::ring_modified || variant == Variant::two_rings_modified;
  int first = 1;
  if (modified && count > 1) {
    chain(made, 1, 1, place);
    first = 2;
  }
  switch (variant) {
    case Variant::ring:
    case Variant::ring_modified:
      chain(made, first, count - 1, place);
      break;
    case Variant::two_rings:
    case Variant::two_rings_modified: {
      const int middle = first + (count - first + 1) / 2;
      chain(made, first, middle - 1, place);
      chain(made, middle, count - 1, place);
      break;
    }
    case Variant::tree:
      tree(made, count, place);
      break;
    case Variant::star:
      for (int next = 1; next < count; ++next) chain(made, next, next, place);
      break;
  }
  return made;
}

void Broadcast::expect(int64_t panel, int root, size_t bytes) {
  const int place = (grid_.column - root + grid_.columns) % grid_.columns;
  if (place == 0) return;
  if (passed_on_) settle();  // what lay in the slot may still be on its way
  const Links mine = links(variant_, grid_.columns, place);
  Expected expected{panel, bytes, rank_at(root, mine.parent), {}, false};
  for (const int child : mine.children) expected.children.push_back(rank_at(root, child));
  comm_.expect(expected.parent, Channel::panel, slot(panel), bytes);
  expected_.push_back(std::move(expected));
}

void Broadcast::start(int64_t panel, size_t bytes) {
  for (const int child : links(variant_, grid_.columns, 0).children)
    comm_.send(rank_at(grid_.column, child), Channel::panel, slot(panel), slot(panel), bytes);
}

void Broadcast::pass_on(Expected& expected) {
  comm_.receive(expected.parent, Channel::panel);
  expected.here = true;
  passed_on_ = passed_on_ || !expected.children.empty();
  for (const int child : expected.children)
    comm_.send(child, Channel::panel, slot(expected.panel), slot(expected.panel), expected.bytes);
}

void Broadcast::poll() {
  const auto next = std::find_if(expected_.begin(), expected_.end(), [](const auto& e) { return !e.here; });
  if (next == expected_.end() || next->children.empty() || !comm_.arrived(next->parent, Channel::panel))
    return;
  const auto ready = [&](int child) { return comm_.expected_by(child, Channel::panel); };
  if (std::all_of(next->children.begin(), next->children.end(), ready)) pass_on(*next);
}

void Broadcast::receive(int64_t panel) {
  if (expected_.empty() || expected_.front().panel != panel) return;  // this rank was its root
  if (!expected_.front().here) pass_on(expected_.front());
  expected_.erase(expected_.begin());
}

}  // namespace hpl
