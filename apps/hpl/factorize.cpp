// The LU factorization: right-looking over panels; the next panel is factorized and sent while the matrix is
// updated with the present one.
#include <algorithm>
#include <chrono>

#include "system.h"

namespace hpl {

namespace {

constexpr int64_t kLeastPiece = 2048;  // columns; many times a GPU's tile size

/// Adds the time between its construction and destruction to a sum.
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
        broadcast_(system.comm, device_, layout_.grid, system.panel_slots(), method.sending),
        on_cpu_(system.comm, layout_, system.cpu_pool.memory, system.rooms.pivot, method.leaf, method.pfact),
        swap_(system.comm, device_, layout_, system.a, system.device_pool.memory, system.rooms.swap,
              system.top),
        by_device_(system.joined && method.pfact == Looking::right),
        updated_(static_cast<size_t>(layout_.columns.size() / layout_.nb + 1), device_.mark(kMain)) {
    if (system.joined && !by_device_) system.cpu_panels = "a GPU's leaves are right-looking";
  }
  ~Factorization() {
    for (const Queue queue : {kMain, kAhead, kRows, kPanels}) device_.wait(queue);
  }
  Factorization(const Factorization&) = delete;
  Factorization& operator=(const Factorization&) = delete;

  int64_t run() {
    const int64_t count = layout_.blocks();
    for (int64_t k = 0; k < Broadcast::kSlots; ++k) expect(k);
    if (mine(0)) make(0);
    int64_t info = 0;
    Mark last = device_.mark(kMain);
    for (int64_t k = 0; k < count; ++k) {
      const Panel panel = receive(k);
      if (info == 0) info = head().info;
      step(k, panel);
      if (device_.on_host()) {
        expect(k + Broadcast::kSlots);
      } else {  // the slot of the last panel is free when the update with it is done
        device_.reach(last);
        last = device_.mark(kMain);
        if (k > 0) expect(k - 1 + Broadcast::kSlots);
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
  ///
  /// On GPUs the kernels of the ranks of a column wait for one another, each for those of the same number,
  /// and the host may wait here for its own kernel. These waits end, because every rank of the column gets
  /// here without needing anything more from a rank that is here already. What it still needs belongs to
  /// earlier panels: the panels themselves and, for the updates with them, rows of its column. With
  /// look-ahead or without, a rank has started these messages and passed the panels on before it comes here,
  /// and settle() sees them arrive before any kernel can keep the GPU from sending. What a rank does
  /// afterwards is for later panels.
  void make(int64_t k) {
    const Timed timed(phases_.panel);
    const Panel made = panel(k);
    const int64_t column = layout_.columns.local(made.first), row = layout_.rows.before(made.first);
    double* here = system_.a + column * layout_.ld + row;
    broadcast_.settle();
    if (by_device_) system_.comm.settle(Channel::swap);
    device_.copy(kAhead, made.body(), made.ld, here, layout_.ld, made.rows, made.width);
    if (!by_device_ || !device_.factorize(made)) factorize_on_cpu(made);
    if (made.top) device_.copy(kAhead, here, layout_.ld, made.square(), made.width, made.width, made.width);
    broadcast_.start(k, made.bytes());
  }

  void factorize_on_cpu(const Panel& made) {
    if (device_.on_host()) return on_cpu_.run(made);
    if (by_device_)
      system_.cpu_panels = "the first ones have more rows than shared memory of the GPUs has room for";
    Panel staged = made;
    staged.memory = system_.staged_panel();
    device_.wait(kAhead);
    device_.copy(kAhead, staged.body(), made.body(), sizeof(double) * size_t(made.ld * made.width));
    on_cpu_.run(staged);
    device_.copy(kAhead, made.memory, staged.memory, made.bytes());
  }

  Panel receive(int64_t k) {
    const Timed timed(phases_.broadcast);
    broadcast_.receive(k);
    const Panel here = panel(k);
    head_and_pivots_.resize(sizeof(PanelHead) / sizeof(int64_t) + static_cast<size_t>(here.width));
    device_.copy(kAhead, head_and_pivots_.data(), here.memory, sizeof(int64_t) * head_and_pivots_.size());
    device_.take_triangle(here.width, here.square());
    swap_.prepare(here.first, head_and_pivots_.data() + sizeof(PanelHead) / sizeof(int64_t), here.width);
    return here;
  }
  [[nodiscard]] const PanelHead& head() const {
    return *reinterpret_cast<const PanelHead*>(head_and_pivots_.data());
  }

  /// Updates the columns after the panel; those of the next panel come first, if they are here.
  void step(int64_t k, const Panel& panel) {
    const Axis& columns = layout_.columns;
    const int64_t after = panel.first + panel.width;
    const int64_t begin = columns.before(after), end = columns.size();
    const bool next = k + 1 < layout_.blocks() && mine(k + 1);
    const bool ahead = next && method_.depth > 0;
    const int64_t middle = ahead ? columns.before(std::min(after + layout_.nb, layout_.n)) : begin;
    update(kAhead, panel, begin, middle);
    // Other ranks wait for the panel; a GPU gets its update first, so that it has work meanwhile.
    const bool at_once = ahead && device_.on_host();
    if (at_once) make(k + 1);
    const int64_t piece = piece_of(end - middle);
    for (int64_t at = middle; at < end; at += piece) update(kMain, panel, at, std::min(at + piece, end));
    if (next && !ahead) device_.wait(kMain);
    if (next && !at_once) make(k + 1);
  }

  void update(Queue queue, const Panel& panel, int64_t begin, int64_t end) {
    if (begin == end) return;
    // For the last block of these columns.
    Mark& updated = updated_[static_cast<size_t>((end - 1) / layout_.nb)];
    TopRows top{};
    {
      const Timed timed(phases_.swap);
      const Queue exchange = queue == kMain ? kRows : queue;
      device_.follow(exchange, updated);
      top = swap_.run(exchange, begin, end);
      if (exchange != queue) device_.follow(queue, device_.mark(exchange));
    }
    const Timed timed(phases_.update);
    const TopRows u = swap_.place_of_u(begin);
    device_.solve_lower(queue, end - begin, top, u);
    const int64_t row = layout_.rows.size() - panel.rows_below();
    const int64_t part = part_of(end - begin);
    for (int64_t at = begin; at < end; at += part) {
      const int64_t n = std::min(part, end - at);
      device_.gemm(queue, panel.rows_below(), n, panel.width, panel.below(), panel.ld,
                   u.values + (at - begin) * u.ld, u.ld, system_.a + at * layout_.ld + row, layout_.ld);
      broadcast_.poll();
    }
    updated = device_.mark(queue);
    std::fill(updated_.begin() + begin / layout_.nb, updated_.begin() + (end - 1) / layout_.nb, updated);
  }

  /// Returns the number of columns whose rows are exchanged while those before them are updated: a quarter,
  /// or fewer.
  [[nodiscard]] int64_t piece_of(int64_t columns) const {
    if (device_.on_host()) return columns;
    const int64_t wanted = std::min(std::max(columns / 4, kLeastPiece), device_.widest());
    return std::max(wanted / layout_.nb, int64_t{1}) * layout_.nb;
  }
  /// On the CPU, a rank that passes panels on polls for them between parts of the update.
  [[nodiscard]] int64_t part_of(int64_t columns) const {
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
  std::vector<int64_t> head_and_pivots_;  // the head and the pivots of a panel
  bool by_device_;
  std::vector<Mark> updated_;  // for each local block of columns, its last update
};

}  // namespace

int64_t System::factorize(const Method& method, Phases& phases) {
  return Factorization(*this, method, phases).run();
}

}  // namespace hpl
