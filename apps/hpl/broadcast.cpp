#include "broadcast.h"

#include <algorithm>
#include <stdexcept>

namespace hpl {

namespace {

constexpr const char* kNames[] = {"1ring", "1ringM", "2ring", "2ringM", "long", "longM", "tree", "star"};

using Messages = std::vector<Message>;

/// A chain from the root through the places `first` to `last`, for the whole panel.
void chain(Messages& all, int first, int last, int place) {
  if (first > last) return;
  if (place == 0) all.push_back({{0, 1}, -1, {first}});
  if (place < first || place > last) return;
  all.push_back({{0, 1}, place == first ? 0 : place - 1, {}});
  if (place < last) all.back().children.push_back(place + 1);
}

/// Binomial tree: in round r the places below 2^r send to the places 2^r further.
void tree(Messages& all, int count, int place) {
  Message message{{0, 1}, -1, {}};
  int round = 1;
  for (; round <= place; round *= 2) message.parent = place - round;
  for (; place + round < count; round *= 2) message.children.push_back(place + round);
  all.push_back(std::move(message));
}

/// Sends a part to each of the places `first` to `last`; the parts then go around a ring until all places
/// have all of them.
void spread(Messages& all, int first, int last, int place) {
  const int parts = last - first + 1, own = place - first;
  if (place == 0)
    for (int part = 0; part < parts; ++part) all.push_back({{part, parts}, -1, {first + part}});
  if (own < 0 || own >= parts) return;
  const int before = first + (own + parts - 1) % parts, next = first + (own + 1) % parts;
  for (int round = 0; round < parts; ++round) {
    all.push_back({{(own + parts - round) % parts, parts}, round == 0 ? 0 : before, {}});
    if (round + 1 < parts) all.back().children.push_back(next);
  }
}

}  // namespace

const std::vector<Variant>& all_variants() {
  static const std::vector<Variant> all{
      Variant::ring,   Variant::ring_modified,   Variant::two_rings, Variant::two_rings_modified,
      Variant::spread, Variant::spread_modified, Variant::tree,      Variant::star};
  return all;
}

std::string to_string(Variant variant) { return kNames[static_cast<int>(variant)]; }

Variant variant_of(const std::string& name) {
  for (const Variant variant : all_variants())
    if (to_string(variant) == name) return variant;
  throw std::invalid_argument(name);
}

std::vector<Message> messages(Variant variant, int count, int place) {
  Messages made;
  const bool modified = variant == Variant::ring_modified || variant == Variant::two_rings_modified ||
                        variant == Variant::spread_modified;
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
    case Variant::spread:
    case Variant::spread_modified:
      spread(made, first, count - 1, place);
      break;
    case Variant::tree:
      tree(made, count, place);
      break;
    case Variant::star:
      for (int next = 1; next < count; ++next) chain(made, next, next, place);
      break;
  }
  return made;
}

std::vector<Message> Broadcast::messages_of(int root) const {
  const int place = (grid_.column - root + grid_.columns) % grid_.columns;
  Messages all = messages(sending_.variant, grid_.columns, place);
  const auto to_rank = [&](int& at) { at = grid_.rank(grid_.row, (root + at) % grid_.columns); };
  for (Message& message : all) {
    if (message.parent >= 0) to_rank(message.parent);
    std::for_each(message.children.begin(), message.children.end(), to_rank);
  }
  return all;
}

void Broadcast::expect(int64_t panel, int root, size_t bytes) {
  if (grid_.column == root) return;
  if (sent_) settle();  // earlier contents of the slot may still be on their way
  Expected expected{panel, grid_.rank(grid_.row, root), bytes, messages_of(root), 0};
  for (const auto& [part, parent, children] : expected.messages)
    comm_.expect(parent, channel(parent, expected.root), slot(panel) + part.begin(bytes),
                 part.end(bytes) - part.begin(bytes));
  expected_.push_back(std::move(expected));
}

void Broadcast::start(int64_t panel, size_t bytes) {
  if (sending_.by_stream)
    device_.follow(kPanels, device_.mark(kAhead));
  else
    device_.wait(kAhead);
  const int root = grid_.rank(grid_.row, grid_.column);
  for (const Message& message : messages_of(grid_.column)) send(panel, bytes, message, channel(root, root));
}

void Broadcast::send(int64_t panel, size_t bytes, const Message& message, Channel channel) {
  const size_t begin = message.part.begin(bytes), at = slot(panel) + begin;
  const size_t length = message.part.end(bytes) - begin;
  for (const int child : message.children) {
    sent_ = true;
    if (channel == Channel::prepared)
      comm_.send_behind(device_.handle(kPanels), child, at, length);
    else
      comm_.send(child, channel, at, at, length);
  }
}

void Broadcast::settle() {
  comm_.settle(Channel::panel);
  if (sending_.by_stream) comm_.settle(Channel::prepared);
  sent_ = false;
}

void Broadcast::pass_on(Expected& expected) {
  const Message& message = expected.messages[expected.here];
  comm_.receive(message.parent, channel(message.parent, expected.root));
  ++expected.here;
  send(expected.panel, expected.bytes, message, Channel::panel);
}

void Broadcast::poll() {
  const auto next = std::find_if(expected_.begin(), expected_.end(),
                                 [](const Expected& e) { return e.here < e.messages.size(); });
  if (next == expected_.end()) return;
  const auto ready = [&](int child) { return comm_.expected_by(child, Channel::panel); };
  for (; next->here < next->messages.size(); pass_on(*next)) {
    const auto& [part, parent, children] = next->messages[next->here];
    const bool last = next->here + 1 == next->messages.size();
    if (last && children.empty()) return;  // nobody waits for it
    if (!comm_.arrived(parent, channel(parent, next->root)) ||
        !std::all_of(children.begin(), children.end(), ready))
      return;
  }
}

void Broadcast::receive(int64_t panel) {
  if (expected_.empty() || expected_.front().panel != panel) return;  // this rank was its root
  Expected& expected = expected_.front();
  while (expected.here < expected.messages.size()) pass_on(expected);
  expected_.erase(expected_.begin());
}

}  // namespace hpl
