// Simulates Linpack, rank by rank in the order of apps/hpl/factorize.cpp: messages go through SimGrid,
// kernels are times. All messages of a large machine would be 10^8, so only some panels are simulated, and
// exchanges that the ranks of a process column repeat many times are simulated once: see hpl_column.h.
#include "hpl.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>

#include "hpl_column.h"
#include "hpl_plan.h"

namespace scale {

namespace {

namespace s4u = simgrid::s4u;

double now() { return s4u::Engine::get_clock(); }
void sleep_until(double when) {
  if (when > now()) s4u::this_actor::sleep_until(when);
}

/// A GPU does one thing at a time. Work of the queue `ahead` goes before queued updates.
class Gpu {
 public:
  explicit Gpu(size_t pieces) : updated_(pieces, 0) {}
  /// Enqueues the update of a piece after everything else.
  void launch(size_t piece, double us) {
    spent_ += us;
    free_ = std::max(free_, now()) + us;
    updated_[piece] = free_;
  }
  /// Runs work ahead of queued updates; returns when it is done.
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
  std::vector<double> updated_;  // for each piece, when its last update is done
};

class Rank {
 public:
  Rank(const LinpackPlan& plan, size_t p, size_t q)
      : plan_(plan),
        p_(p),
        q_(q),
        gpu_(plan.asked.pieces),
        panels_("panel", plan.rank(p, q)),
        credits_("room", plan.rank(p, q)),
        column_(plan, "swap", p, q) {}

  void open(const s4u::ActorPtr& receiver) {
    for (size_t q = 0; q < plan_.columns; ++q) {
      if (q == q_) continue;
      panels_.open(plan_.rank(p_, q), receiver);
      credits_.open(plan_.rank(p_, q), receiver);
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
      passed_on_.push_back(credits_.to(at_place(k, message.parent)).put(kSignalBytes, {k}));
  }
  void give(size_t k, const hpl::Message& message) {
    for (const int child : message.children) {
      const size_t peer = at_place(k, child);
      right_ = credits_.from(peer).wait() == Values{k} && right_;
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
  /// Between pieces of the update: checks whether the next panel has arrived, and whether there is room where
  /// it goes next.
  void poll() {
    const size_t k = have_;
    if (k >= plan_.chosen.size() || mine(k)) return;
    const std::vector<hpl::Message> own = messages(k);
    const auto room = [&](int child) { return credits_.from(at_place(k, child)).ready(); };
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

  /// Exchanges the rows of `columns` columns.
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

  const LinpackPlan& plan_;
  size_t p_, q_;
  Gpu gpu_;
  Lanes panels_, credits_;
  Column column_;
  std::vector<s4u::CommPtr> passed_on_;
  size_t have_ = 0;  // panels that have arrived or were made here
  size_t here_ = 0;  // messages of the next panel that have arrived
  double first_ = 0;
  bool right_ = true;
};

/// Divides the panels 1 to `all` into equal parts, at most `wanted`, and returns the middle of each.
std::vector<double> spread(uint64_t all, uint64_t wanted) {
  const uint64_t count = std::min(all, wanted);
  const double part = static_cast<double>(all) / static_cast<double>(count);
  std::vector<double> chosen;
  for (uint64_t i = 0; i < count; ++i) chosen.push_back((static_cast<double>(i) + 0.5) * part + 0.5);
  return chosen;
}

LinpackPlan plan_of(const Job& job, const Linpack& asked, uint64_t n) {
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
  LinpackPlan plan = plan_of(job, asked, n);
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
  // The first panel arrives once; each simulated panel stands for equally many others.
  const double times = static_cast<double>(n / asked.nb) / static_cast<double>(plan.chosen.size());
  result.us = first + times * (us - first);
  result.busy = spent * times / (static_cast<double>(plan.ranks()) * result.us);
  return result;
}

}  // namespace scale
