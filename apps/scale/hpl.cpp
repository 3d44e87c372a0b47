// Linpack, rank by rank in the order of apps/hpl/factorize.cpp: the messages are SimGrid's, the kernels are
// times. All messages of a large machine would be 10^8, so only some panels are simulated, and what the ranks
// of a process column exchange in the same way again and again is simulated once: see Exchange and
// pivot_us().
#include "hpl.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <stdexcept>

#include "../hpl/broadcast.h"
#include "post.h"

namespace scale {

namespace {

namespace s4u = simgrid::s4u;

constexpr uint64_t kNumber = 8;  // bytes
constexpr int kPivotsTimed = 8;

double now() { return s4u::Engine::get_clock(); }
void sleep_until(double when) {
  if (when > now()) s4u::this_actor::sleep_until(when);
}

std::string lane_name(const char* what, size_t from, size_t to) {
  return what + std::to_string(from) + ">" + std::to_string(to);
}

/// What all ranks know.
struct Plan {
  const Job& job;
  const Linpack& asked;
  uint64_t n;
  hpl::Variant variant;
  size_t rows, columns;        // P and Q
  std::vector<double> chosen;  // panels that are simulated: how many there are up to each
  double pivot_us = 0, shares = 0;
  std::vector<s4u::BarrierPtr> together{};  // of each process column

  [[nodiscard]] size_t rank(size_t p, size_t q) const { return p + q * rows; }
  [[nodiscard]] size_t ranks() const { return rows * columns; }
  [[nodiscard]] double behind(size_t step) const {  // rows and columns of the matrix behind the panel
    return static_cast<double>(n) - chosen[step] * static_cast<double>(asked.nb);
  }
  [[nodiscard]] double rows_behind(size_t step) const { return behind(step) / static_cast<double>(rows); }
  [[nodiscard]] double columns_behind(size_t step) const {
    return behind(step) / static_cast<double>(columns);
  }
  [[nodiscard]] uint64_t panel_bytes(size_t step) const {
    const auto width = static_cast<double>(asked.nb);
    return static_cast<uint64_t>(kNumber * width * (width + rows_behind(step)));
  }
  /// Bytes that a rank has of the top rows of so many columns: pivots are anywhere.
  [[nodiscard]] double share(double of_columns) const {
    return static_cast<double>(kNumber * asked.nb) / static_cast<double>(rows) * of_columns;
  }
  [[nodiscard]] size_t root(size_t step) const { return step % columns; }
  [[nodiscard]] size_t holder(size_t step) const { return step % rows; }  // of the panel's top rows
};

/// A GPU does one thing at a time. What is ahead goes before what has been put into the queue.
class Gpu {
 public:
  explicit Gpu(size_t pieces) : updated_(pieces, 0) {}
  /// Puts the update of a piece behind all else.
  void launch(size_t piece, double us) {
    spent_ += us;
    free_ = std::max(free_, now()) + us;
    updated_[piece] = free_;
  }
  /// When it is done.
  double ahead(double us) {
    spent_ += us;
    free_ = std::max(free_, now()) + us;
    for (double& updated : updated_)
      if (updated > now()) updated += us;
    return now() + us;
  }
  [[nodiscard]] double updated(size_t piece) const { return updated_[piece]; }
  [[nodiscard]] double free() const { return free_; }
  [[nodiscard]] double spent() const { return spent_; }

 private:
  double free_ = 0, spent_ = 0;
  std::vector<double> updated_;  // of each piece, when its last update is done
};

/// The lanes of one kind between a rank and others, by peer.
class Lanes {
 public:
  Lanes(const char* what, size_t rank) : what_(what), rank_(rank) {}
  Lane& to(size_t peer) { return at(to_, peer, lane_name(what_, rank_, peer)); }
  Lane& from(size_t peer) { return at(from_, peer, lane_name(what_, peer, rank_)); }
  void open(size_t peer, const s4u::ActorPtr& receiver) { from(peer).open(receiver); }

 private:
  static Lane& at(std::map<size_t, Lane>& lanes, size_t peer, const std::string& name) {
    return lanes.try_emplace(peer, name).first->second;
  }
  const char* what_;
  size_t rank_;
  std::map<size_t, Lane> to_, from_;
};

/// Between the ranks of a process column, who all take part.
class Column {
 public:
  Column(const Plan& plan, const char* what, size_t p, size_t q)
      : plan_(plan), p_(p), q_(q), lanes_(what, plan.rank(p, q)) {}
  void open(const s4u::ActorPtr& receiver) {
    for (size_t p = 0; p < plan_.rows; ++p)
      if (p != p_) lanes_.open(plan_.rank(p, q_), receiver);
  }
  /// To each other rank, nearest first; false if something else came than what is to come.
  bool all(uint64_t bytes, const Values& values) {
    for (size_t step = 1; step < plan_.rows; ++step) put((p_ + step) % plan_.rows, bytes, values);
    bool right = true;
    for (size_t step = 1; step < plan_.rows; ++step)
      right = take((p_ + plan_.rows - step) % plan_.rows, values) && right;
    settle();
    return right;
  }
  /// With the rank whose number differs in a bit, one bit after the other.
  bool doubling(uint64_t bytes, const Values& values) {
    bool right = true;
    for (size_t bit = 1; bit < plan_.rows; bit *= 2) {
      put(p_ ^ bit, bytes, values);
      right = take(p_ ^ bit, values) && right;
      settle();
    }
    return right;
  }
  /// To the next rank alone.
  bool next(uint64_t bytes, const Values& values) {
    put((p_ + 1) % plan_.rows, bytes, values);
    const bool right = take((p_ + plan_.rows - 1) % plan_.rows, values);
    settle();
    return right;
  }

 private:
  void put(size_t p, uint64_t bytes, Values values) {
    values.push_back(p_);
    sent_.push_back(lanes_.to(plan_.rank(p, q_)).put(bytes, std::move(values)));
  }
  bool take(size_t p, Values values) {
    values.push_back(p);
    return lanes_.from(plan_.rank(p, q_)).wait() == values;
  }
  void settle() {
    for (const s4u::CommPtr& put : sent_) put->wait();
    sent_.clear();
  }

  const Plan& plan_;
  size_t p_, q_;
  Lanes lanes_;
  std::vector<s4u::CommPtr> sent_;
};

class Rank {
 public:
  Rank(const Plan& plan, size_t p, size_t q)
      : plan_(plan),
        p_(p),
        q_(q),
        gpu_(plan.asked.pieces),
        panels_("panel", plan.rank(p, q)),
        rooms_("room", plan.rank(p, q)),
        column_(plan, "swap", p, q) {}

  void open(const s4u::ActorPtr& receiver) {
    for (size_t q = 0; q < plan_.columns; ++q) {
      if (q == q_) continue;
      panels_.open(plan_.rank(p_, q), receiver);
      rooms_.open(plan_.rank(p_, q), receiver);
    }
    column_.open(receiver);
  }

  void run() {
    const size_t count = plan_.chosen.size();
    for (size_t k = 0; k < hpl::Broadcast::kSlots; ++k) expect(k);
    if (mine(0)) make(0);
    double last = 0;
    for (size_t k = 0; k < count; ++k) {
      receive(k);
      if (k == 0) first_ = now();
      step(k);
      sleep_until(last);
      last = gpu_.free();
      if (k > 0) expect(k - 1 + hpl::Broadcast::kSlots);
    }
    sleep_until(gpu_.free());
    settle();
  }

  [[nodiscard]] bool right() const { return right_; }
  [[nodiscard]] double first() const { return first_; }  // when it had the first panel
  [[nodiscard]] double spent() const { return gpu_.spent(); }

 private:
  [[nodiscard]] bool mine(size_t k) const { return plan_.root(k) == q_; }
  [[nodiscard]] std::vector<hpl::Message> messages(size_t k) const {
    const size_t place = (q_ + plan_.columns - plan_.root(k)) % plan_.columns;
    return hpl::messages(plan_.variant, static_cast<int>(plan_.columns), static_cast<int>(place));
  }
  [[nodiscard]] size_t at_place(size_t k, int place) const {
    return plan_.rank(p_, (plan_.root(k) + static_cast<size_t>(std::max(place, 0))) % plan_.columns);
  }
  void settle() {
    for (const s4u::CommPtr& put : passed_on_) put->wait();
    passed_on_.clear();
  }

  /// Tells the senders that there is room for the panel.
  void expect(size_t k) {
    if (k >= plan_.chosen.size() || mine(k)) return;
    for (const hpl::Message& message : messages(k))
      passed_on_.push_back(rooms_.to(at_place(k, message.parent)).put(kSignalBytes, {k}));
  }
  void give(size_t k, const hpl::Message& message) {
    for (const int child : message.children) {
      const size_t peer = at_place(k, child);
      right_ = rooms_.from(peer).wait() == Values{k} && right_;
      const size_t bytes = plan_.panel_bytes(k);
      passed_on_.push_back(panels_.to(peer).put(message.part.end(bytes) - message.part.begin(bytes), {k}));
    }
  }
  void pass_on(size_t k, const hpl::Message& message, bool last) {
    right_ = panels_.from(at_place(k, message.parent)).wait() == Values{k} && right_;
    here_ = last ? 0 : here_ + 1;
    if (last) have_ = k + 1;
    give(k, message);
  }
  void receive(size_t k) {
    if (mine(k)) have_ = std::max(have_, k + 1);
    if (have_ > k) return;
    const std::vector<hpl::Message> own = messages(k);
    for (size_t at = here_; at < own.size(); ++at) pass_on(k, own[at], at + 1 == own.size());
  }
  /// Between pieces of the update: is the next panel here, and has it room where it goes next?
  void poll() {
    const size_t k = have_;
    if (k >= plan_.chosen.size() || mine(k)) return;
    const std::vector<hpl::Message> own = messages(k);
    const auto room = [&](int child) { return rooms_.from(at_place(k, child)).ready(); };
    for (size_t at = here_; at < own.size(); ++at) {
      const auto& [part, parent, children] = own[at];
      const bool last = at + 1 == own.size();
      if ((last && children.empty()) || !panels_.from(at_place(k, parent)).ready()) return;
      if (!std::all_of(children.begin(), children.end(), room)) return;
      pass_on(k, own[at], last);
    }
  }

  void make(size_t k) {
    settle();
    const double width = static_cast<double>(plan_.asked.nb);
    const double kernels = width * plan_.asked.kernels.column_us;
    gpu_.ahead(kernels);
    s4u::this_actor::sleep_for(kernels + width * plan_.pivot_us);
    for (const hpl::Message& message : messages(k)) give(k, message);
  }

  /// Of the rows of so many columns.
  void exchange(size_t k, double columns) {
    if (plan_.rows == 1) return;
    const double share = plan_.share(columns);
    if (plan_.asked.whole) {
      const auto bytes = static_cast<uint64_t>(plan_.holder(k) == p_ ? 2 * share : share);
      right_ = column_.all(bytes, {k}) && right_;
      return;
    }
    plan_.together[q_]->wait();
    right_ = column_.next(static_cast<uint64_t>(plan_.shares * share), {k}) && right_;
  }
  [[nodiscard]] double update_us(size_t k, double columns) const {
    const Kernels& kernels = plan_.asked.kernels;
    const double width = static_cast<double>(plan_.asked.nb);
    return columns * width * (2 * plan_.rows_behind(k) / kernels.gemm + kernels.element_us);
  }

  void step(size_t k) {
    const bool next = k + 1 < plan_.chosen.size() && mine(k + 1);
    const double columns = plan_.columns_behind(k);
    const double first = next ? std::min(static_cast<double>(plan_.asked.nb), columns) : 0;
    double ahead = 0;
    if (next) {
      sleep_until(gpu_.updated(0));
      exchange(k, first);
      ahead = gpu_.ahead(update_us(k, first));
    }
    const auto pieces = static_cast<size_t>(plan_.asked.pieces);
    const double part = (columns - first) / static_cast<double>(pieces);
    for (size_t piece = 0; piece < pieces; ++piece) {
      sleep_until(gpu_.updated(piece));
      exchange(k, part);
      gpu_.launch(piece, update_us(k, part));
      poll();
    }
    if (!next) return;
    sleep_until(ahead);
    make(k + 1);
  }

  const Plan& plan_;
  size_t p_, q_;
  Gpu gpu_;
  Lanes panels_, rooms_;
  Column column_;
  std::vector<s4u::CommPtr> passed_on_;
  size_t have_ = 0;  // panels that have come, or were made here
  size_t here_ = 0;  // messages of the next one that have come
  double first_ = 0;
  bool right_ = true;
};

/// What the ranks of the first process column take for something, while nothing else goes on.
template <class Act>
double in_column(s4u::Engine& engine, const Plan& plan, const char* what, bool& right, Act&& act) {
  return timed(engine, [&] {
    for (size_t p = 0; p < plan.rows; ++p) {
      const auto column = std::make_shared<Column>(plan, what, p, 0);
      column->open(s4u::Actor::create("rank", plan.job.host_of[p], [&, column, p] {
        if (!act(*column, p)) right = false;
      }));
    }
  });
}

/// To all: the candidate's row of the panel and the top one. The mean of some in a row.
double pivot_us(s4u::Engine& engine, const Plan& plan, bool& right) {
  const uint64_t bytes = kNumber * (2 * plan.asked.nb + 8);
  const double us = in_column(engine, plan, "pivot", right, [&](Column& column, size_t) {
    bool good = true;
    for (uint64_t i = 0; i < kPivotsTimed; ++i)
      good = (plan.asked.doubling ? column.doubling(bytes, {i}) : column.all(bytes, {i})) && good;
    return good;
  });
  return us / kPivotsTimed;
}

/// An exchange of rows: to all a share, and as much again from the holder of the top, for what it displaces.
/// Gives how many shares go to the next rank in that time.
double shares(s4u::Engine& engine, const Plan& plan, bool& right) {
  constexpr uint64_t kShare = uint64_t{64} << 20;
  const double all = in_column(engine, plan, "rows", right, [&](Column& column, size_t p) {
    return column.all(p == 0 ? 2 * kShare : kShare, {0});
  });
  const double one =
      in_column(engine, plan, "row", right, [&](Column& column, size_t) { return column.next(kShare, {0}); });
  return all / one;
}

/// The middle one of each of so many equal parts of the panels 1 to `all`.
std::vector<double> spread(uint64_t all, uint64_t wanted) {
  const uint64_t count = std::min(all, wanted);
  const double part = static_cast<double>(all) / static_cast<double>(count);
  std::vector<double> chosen;
  for (uint64_t i = 0; i < count; ++i) chosen.push_back((static_cast<double>(i) + 0.5) * part + 0.5);
  return chosen;
}

Plan plan_of(const Job& job, const Linpack& asked, uint64_t n) {
  if (job.grid.size() != 2) throw std::runtime_error("scale: Linpack needs a grid of P x Q; give --grid.");
  if (n % asked.nb != 0)
    throw std::runtime_error("scale: N = " + std::to_string(n) +
                             " is no multiple of NB = " + std::to_string(asked.nb) + "; give one that is.");
  if (asked.doubling && !std::has_single_bit(job.grid[0]))
    throw std::runtime_error("scale: --pivots doubling needs a power of two of rows of ranks.");
  return {job,
          asked,
          n,
          hpl::variant_of(asked.broadcast),
          job.grid[0],
          job.grid[1],
          spread(n / asked.nb, asked.panels)};
}

}  // namespace

LinpackResult linpack(s4u::Engine& engine, const Job& job, const Linpack& asked, uint64_t n) {
  Plan plan = plan_of(job, asked, n);
  LinpackResult result;
  result.panels = plan.chosen.size();
  if (plan.rows > 1) {
    result.pivot_us = plan.pivot_us = pivot_us(engine, plan, result.right);
    result.shares = plan.shares = shares(engine, plan, result.right);
    for (size_t q = 0; q < plan.columns; ++q)
      plan.together.push_back(s4u::Barrier::create(static_cast<unsigned>(plan.rows)));
  }
  std::vector<std::unique_ptr<Rank>> ranks;
  const double began = now();
  const double us = timed(engine, [&] {
    for (size_t rank = 0; rank < plan.ranks(); ++rank) {
      Rank& own = *ranks.emplace_back(std::make_unique<Rank>(plan, rank % plan.rows, rank / plan.rows));
      own.open(s4u::Actor::create("rank", job.host_of[rank], [&own] { own.run(); }));
    }
  });
  double first = 0, spent = 0;
  for (const auto& rank : ranks) {
    first = std::max(first, rank->first() - began);
    spent += rank->spent();
    result.right = result.right && rank->right();
  }
  // The first panel comes once, and each of those simulated stands for as many.
  const double times = static_cast<double>(n / asked.nb) / static_cast<double>(plan.chosen.size());
  result.us = first + times * (us - first);
  result.busy = spent * times / (static_cast<double>(plan.ranks()) * result.us);
  return result;
}

}  // namespace scale
