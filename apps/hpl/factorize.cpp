// The LU factorization: right-looking over panels, with the next panel factorized and sent while the matrix
// is updated with this one.
#include <algorithm>
#include <chrono>

#include "system.h"

namespace hpl {

namespace {

constexpr int64_t kPieceOnGpu = 8192;  // columns: many times the GPU's tiles

/// Adds the time until it is destroyed.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum), began_(std::chrono::steady_clock::now()) {}
  ~Timed() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& sum_;
  std::chrono::steady_clock::time_point began_;
};

class Factorization {
 public:
  Factorization(System& system, const Method& method, Phases& phases)
      : system_(system),
        device_(system.device),
        layout_(system.layout),
        method_(method),
        phases_(phases),
        broadcast_(system.comm, layout_.grid, 0, system.rooms.panel_slot),
        on_cpu_(system.comm, layout_, system.cpu_pool.memory, system.rooms.pivot, method.leaf),
        swap_(system.comm, device_, layout_, system.a, system.device_pool.memory,
              {system.rooms.panel_slot * Broadcast::kSlots, system.rooms.swap_place}, system.top) {
    broadcast_.choose(method.broadcast);
    const size_t room = Panel::room(layout_.nb, Layout::padded(layout_.rows.before(layout_.n, 0)));
    if (!device_.on_host()) staged_ = static_cast<double*>(device_.allocate_host(room));
  }
  ~Factorization() {
    device_.wait(kMain);
    if (staged_ != nullptr) device_.free(staged_);
  }
  Factorization(const Factorization&) = delete;
  Factorization& operator=(const Factorization&) = delete;

  int64_t run() {
    const int64_t count = layout_.blocks();
    for (int64_t k = 0; k < Broadcast::kSlots; ++k) expect(k);
    if (mine(0)) make(0);
    int64_t info = 0;
    for (int64_t k = 0; k < count; ++k) {
      const Panel panel = receive(k);
      if (info == 0) info = head_.info;
      step(k, panel);
      device_.mark();
      if (device_.on_host()) {
        expect(k + Broadcast::kSlots);
      } else if (k > 0) {  // the slot of the last panel is free when its update is done
        device_.reach();
        expect(k - 1 + Broadcast::kSlots);
      }
    }
    device_.wait(kMain);
    broadcast_.settle();
    return info;
  }

 private:
  [[nodiscard]] bool mine(int64_t k) const {
    return layout_.columns.owner(k * layout_.nb) == layout_.grid.column;
  }

  [[nodiscard]] Panel panel(int64_t k) const {
    const int64_t first = k * layout_.nb;
    const int64_t rows = layout_.rows.size() - layout_.rows.before(first);
    auto* memory = reinterpret_cast<double*>(system_.device_pool.memory + broadcast_.slot(k));
    return {memory,
            std::min(layout_.nb, layout_.n - first),
            rows,
            Layout::padded(rows),
            layout_.rows.owner(first) == layout_.grid.row,
            first};
  }

  void expect(int64_t k) {
    if (k < layout_.blocks()) broadcast_.expect(k, layout_.columns.owner(k * layout_.nb), panel(k).bytes());
  }

  /// Factorizes a panel that has all earlier updates, and sends it.
  void make(int64_t k) {
    const Timed timed(phases_.panel);
    const Panel made = panel(k);
    const int64_t column = layout_.columns.local(made.first), row = layout_.rows.before(made.first);
    double* here = system_.a + column * layout_.ld + row;
    broadcast_.settle();
    device_.copy(kAhead, made.body(), made.ld, here, layout_.ld, made.rows, made.width);
    if (layout_.grid.rows > 1 || !device_.factorize(made)) factorize_on_cpu(made);
    if (made.top) device_.copy(kAhead, here, layout_.ld, made.square(), made.width, made.width, made.width);
    device_.wait(kAhead);
    broadcast_.start(k, made.bytes());
  }

  void factorize_on_cpu(const Panel& made) {
    if (device_.on_host()) return on_cpu_.run(made);
    Panel staged = made;
    staged.memory = staged_;
    device_.wait(kAhead);
    device_.copy(kAhead, staged.body(), made.body(), sizeof(double) * size_t(made.ld * made.width));
    on_cpu_.run(staged);
    device_.copy(kAhead, made.memory, staged.memory, made.bytes());
  }

  Panel receive(int64_t k) {
    const Timed timed(phases_.broadcast);
    broadcast_.receive(k);
    const Panel here = panel(k);
    pivots_.resize(static_cast<size_t>(here.width));
    device_.copy(kAhead, &head_, here.head(), sizeof head_);
    device_.copy(kAhead, pivots_.data(), here.pivots(), sizeof(int64_t) * pivots_.size());
    swap_.prepare(here.first, pivots_.data(), here.width);
    return here;
  }

  /// Updates the columns behind the panel; those of the next one first, if they are here.
  void step(int64_t k, const Panel& panel) {
    const Axis& columns = layout_.columns;
    const int64_t after = panel.first + panel.width;
    const int64_t begin = columns.before(after), end = columns.size();
    const bool next = k + 1 < layout_.blocks() && mine(k + 1);
    if (!next || method_.depth == 0) {
      update(kMain, panel, begin, end);
      device_.wait(kMain);
      if (next) make(k + 1);
      return;
    }
    const int64_t middle = columns.before(std::min(after + layout_.nb, layout_.n));
    device_.follow(kAhead, kMain);
    update(kAhead, panel, begin, middle);
    if (device_.on_host()) {  // others wait for it
      make(k + 1);
      update(kMain, panel, middle, end);
    } else {  // the GPU goes on while the panel is factorized
      update(kMain, panel, middle, end);
      make(k + 1);
    }
  }

  void update(Queue queue, const Panel& panel, int64_t begin, int64_t end) {
    if (begin == end) return;
    TopRows top{};
    {
      const Timed timed(phases_.swap);
      top = swap_.run(queue, begin, end);
    }
    const Timed timed(phases_.update);
    device_.solve_lower(queue, panel.width, end - begin, panel.square(), panel.width, top.values, top.ld);
    const int64_t row = layout_.rows.size() - panel.rows_below();
    const int64_t piece = piece_of(end - begin);
    for (int64_t at = begin; at < end; at += piece) {
      const int64_t n = std::min(piece, end - at);
      device_.gemm(queue, panel.rows_below(), n, panel.width, panel.below(), panel.ld,
                   top.values + (at - begin) * top.ld, top.ld, system_.a + at * layout_.ld + row, layout_.ld);
      broadcast_.poll();
    }
  }

  /// On the CPU a rank that passes panels on looks for them between pieces of the update. A GPU lets the
  /// panel's kernels in between pieces.
  [[nodiscard]] int64_t piece_of(int64_t columns) const {
    if (!device_.on_host()) return kPieceOnGpu;
    return layout_.grid.columns <= 2 ? columns : std::max(columns / 4, 2 * layout_.nb);
  }

  System& system_;
  Device& device_;
  const Layout& layout_;
  const Method& method_;
  Phases& phases_;
  Broadcast broadcast_;
  PanelFactorization on_cpu_;
  Swap swap_;
  double* staged_ = nullptr;
  PanelHead head_{};
  std::vector<int64_t> pivots_;
};

}  // namespace

int64_t System::factorize(const Method& method, Phases& phases) {
  return Factorization(*this, method, phases).run();
}

}  // namespace hpl
