#include "system.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "gpu_columns.h"

namespace hpl {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kEpsilon = 0x1p-53;  // HPL's, for rounding to nearest
constexpr int64_t kRowsAtOnce = 8192;

size_t aligned(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
size_t doubles(int64_t count) { return sizeof(double) * static_cast<size_t>(std::max<int64_t>(count, 1)); }

}  // namespace

Rooms Rooms::of(const Layout& layout, const Device& device) {
  const int64_t most_rows = layout.rows.before(layout.rows.count, 0);  // process 0 has the most rows
  const size_t slot = aligned(Panel::room(layout.nb, Layout::padded(most_rows)));
  const size_t panels = slot * Broadcast::kSlots;
  const size_t pivot = aligned(PivotRoom::bytes(layout.nb, layout.grid.rows));
  const auto solve = static_cast<size_t>(layout.blocks() * layout.grid.columns * layout.nb) * sizeof(double);
  const SwapRooms swap = SwapRooms::of(layout, device.widest(), panels);
  const size_t leaf = aligned(panels + swap.bytes);
  return {slot,
          swap,
          {0, PivotRoom::message_bytes(layout.nb)},
          leaf,
          pivot,
          leaf + device.panel_room(layout.nb),
          pivot + aligned(solve)};
}

uint64_t bytes_needed(const Layout& layout, const Device& device) {
  const Rooms rooms = Rooms::of(layout, device);
  const int64_t columns = layout.columns.before(layout.columns.count, 0);
  const int64_t ld = Layout::padded(layout.rows.before(layout.rows.count, 0));
  const uint64_t top = layout.grid.rows == 1 ? 0 : doubles(layout.nb * columns);
  return doubles(ld * columns) + rooms.device_bytes + top + 2 * doubles(std::max(ld, columns)) +
         device.own_bytes(layout.nb);
}

System::System(Comm& comm_of_all, Device& of_rank, const Layout& of_matrix)
    : comm(comm_of_all), device(of_rank), layout(of_matrix), rooms(Rooms::of(of_matrix, of_rank)) {
  const int64_t columns = layout.columns.size();
  a = static_cast<double*>(device.allocate(doubles(layout.ld * columns)));
  top = static_cast<double*>(device.allocate(doubles(layout.grid.rows == 1 ? 1 : layout.nb * columns)));
  x = static_cast<double*>(device.allocate(doubles(columns)));
  y = static_cast<double*>(device.allocate(doubles(layout.ld)));
  x_host = static_cast<double*>(device.allocate_host(doubles(columns)));
  y_host = static_cast<double*>(device.allocate_host(doubles(layout.ld)));
  device_pool = {static_cast<char*>(device.allocate(rooms.device_bytes)), rooms.device_bytes};
  cpu_pool = {static_cast<char*>(device.allocate_host(rooms.cpu_bytes)), rooms.cpu_bytes};
  comm.use(device_pool, cpu_pool);
  device.expect(layout.nb);
  cpu_panels = device.on_host() ? "the matrix is in their memory"
                                : join_column(comm, device, layout, device_pool, rooms.leaf);
  joined = cpu_panels.empty();
  if (!device.on_host() && !joined) staged_panel();
}

double* System::staged_panel() {
  const size_t room = Panel::room(layout.nb, Layout::padded(layout.rows.before(layout.n, 0)));
  if (staged_ == nullptr) staged_ = static_cast<double*>(device.allocate_host(room));
  return staged_;
}

System::~System() {
  for (void* memory : {static_cast<void*>(a), static_cast<void*>(top), static_cast<void*>(x),
                       static_cast<void*>(y), static_cast<void*>(x_host), static_cast<void*>(y_host),
                       static_cast<void*>(device_pool.memory), static_cast<void*>(cpu_pool.memory)})
    device.free(memory);
  if (staged_ != nullptr) device.free(staged_);
}

void System::generate(bool constant) { device.generate(layout, a, constant); }

std::vector<double> System::solution() {
  const Axis& axis = layout.columns;
  std::vector<double> whole(static_cast<size_t>(layout.n));
  const int64_t most = axis.before(axis.count, 0);
  std::vector<double> mine(static_cast<size_t>(most)), all(mine.size() * static_cast<size_t>(comm.size()));
  std::copy_n(x_host, axis.size(), mine.begin());
  comm.all_gather(mine.data(), doubles(most), all.data());
  for (int q = 0; q < layout.grid.columns; ++q) {
    Axis theirs = axis;
    theirs.mine = q;
    const double* first = all.data() + layout.grid.rank(0, q) * most;
    for (int64_t j = 0; j < theirs.size(); ++j)
      if (theirs.global(j) < layout.n) whole[static_cast<size_t>(theirs.global(j))] = first[j];
  }
  return whole;
}

double System::residual(bool constant) {
  const Axis &rows = layout.rows, &columns = layout.columns;
  const int64_t unknowns = columns.before(layout.n), count = rows.size();
  double x_norm = 0, b_norm = 0, a_norm = 0, r_norm = 0;
  for (const double value : solution())
    x_norm = std::max(x_norm, std::isnan(value) ? INFINITY : std::abs(value));

  device.generate(layout, a, constant);
  const bool has_b = columns.owner(layout.n) == layout.grid.column;
  std::fill_n(y_host, count, 0.0);
  device.copy(kMain, y, y_host, doubles(count));
  device.add_magnitudes(count, unknowns, a, layout.ld, y);
  std::vector<double> magnitudes(static_cast<size_t>(std::max<int64_t>(count, 1)));
  device.copy(kMain, magnitudes.data(), y, doubles(count));
  std::fill_n(y_host, count, 0.0);
  if (has_b && count > 0) device.copy(kMain, y_host, a + columns.local(layout.n) * layout.ld, doubles(count));
  for (int64_t i = 0; i < count; ++i) b_norm = std::max(b_norm, std::abs(y_host[i]));
  device.copy(kMain, y, y_host, doubles(count));
  device.copy(kMain, x, x_host, doubles(columns.size()));
  device.gemv(count, unknowns, a, layout.ld, x, y);
  device.copy(kMain, y_host, y, doubles(count));

  // Adds up the sums over the ranks of a row, some rows at a time.
  const int64_t most = rows.before(rows.count, 0);
  for (int64_t begin = 0; begin < most; begin += kRowsAtOnce) {
    const int64_t part = std::min(kRowsAtOnce, most - begin);
    std::vector<double> mine(static_cast<size_t>(2 * part + 1)), all(mine.size() * size_t(comm.size()));
    mine.back() = b_norm;
    for (int64_t i = begin; i < std::min(begin + part, count); ++i) {
      mine[static_cast<size_t>(i - begin)] = magnitudes[static_cast<size_t>(i)];
      mine[static_cast<size_t>(i - begin + part)] = y_host[i];
    }
    comm.all_gather(mine.data(), mine.size() * sizeof(double), all.data());
    for (int p = 0; p < layout.grid.rows; ++p)
      for (int64_t i = 0; i < part; ++i) {
        double magnitude = 0, rest = 0;
        for (int q = 0; q < layout.grid.columns; ++q) {
          const double* theirs = all.data() + static_cast<size_t>(layout.grid.rank(p, q)) * mine.size();
          magnitude += theirs[i];
          rest += theirs[i + part];
        }
        a_norm = std::max(a_norm, magnitude);
        r_norm = std::max(r_norm, std::isnan(rest) ? INFINITY : std::abs(rest));
      }
    for (int rank = 0; rank < comm.size(); ++rank)
      b_norm = std::max(b_norm, all[static_cast<size_t>(rank + 1) * mine.size() - 1]);
  }
  const double result = r_norm / (kEpsilon * (a_norm * x_norm + b_norm) * static_cast<double>(layout.n));
  return std::isnan(result) ? INFINITY : result;
}

bool System::prepare_panels() {
  std::vector<int> row;
  for (int q = 0; q < layout.grid.columns; ++q) row.push_back(layout.grid.rank(layout.grid.row, q));
  return comm.prepare(row, panel_slots());
}

double System::time_of(const Sending& sending, int64_t& number) {
  constexpr int kTimes = 5;
  const Panel panel{nullptr, std::min(layout.nb, layout.n), 0, layout.ld, false, 0};
  const bool beside = !device.on_host() && layout.columns.size() >= 2 * layout.nb;
  Broadcast broadcast(comm, device, layout.grid, panel_slots(), sending);
  std::vector<double> times;
  for (int time = 0; time < kTimes; ++time, ++number) {
    const int root = static_cast<int>(number % layout.grid.columns);
    broadcast.expect(number, root, panel.bytes());
    comm.barrier();
    const auto began = Clock::now();
    if (beside)
      device.gemm(kMain, layout.rows.size(), layout.nb, std::min(layout.nb, layout.rows.size()), a, layout.ld,
                  a, layout.ld, a + layout.nb * layout.ld, layout.ld);
    if (layout.grid.column == root) broadcast.start(number, panel.bytes());
    broadcast.receive(number);
    broadcast.settle();
    if (beside) device.wait(kMain);
    times.push_back(std::chrono::duration<double>(Clock::now() - began).count());
  }
  std::nth_element(times.begin(), times.begin() + kTimes / 2, times.end());
  return times[kTimes / 2];
}

Sending System::quickest(const std::vector<Sending>& ways) {
  if (ways.size() == 1) return ways.front();
  std::vector<double> mine;
  int64_t number = 0;
  for (const Sending& way : ways) mine.push_back(time_of(way, number));
  std::vector<double> all(mine.size() * static_cast<size_t>(comm.size()));
  comm.all_gather(mine.data(), mine.size() * sizeof(double), all.data());
  for (size_t i = 0; i < all.size(); ++i) mine[i % mine.size()] = std::max(mine[i % mine.size()], all[i]);
  return ways[static_cast<size_t>(std::min_element(mine.begin(), mine.end()) - mine.begin())];
}

}  // namespace hpl
