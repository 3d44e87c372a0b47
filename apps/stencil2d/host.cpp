// The kernels as loops on the CPU.
#include "host.h"

#include <chrono>
#include <cstring>
#include <stdexcept>

#include "point.h"
#include "variant.h"

namespace stencil {

namespace {

struct Rows {
  const double* from;
  double* to;
  size_t pitch;

  void step_at(uint64_t y, uint64_t x) const {  // of own cells
    const size_t i = (y + 1) * pitch + x + 1;
    to[i] = step(from[i - pitch], from[i + pitch], from[i - 1], from[i + 1], from[i]);
  }
};

void sweep_block(const Rows& rows, uint64_t y0, uint64_t y1, uint64_t x0, uint64_t x1) {
  for (uint64_t y = y0; y < y1; ++y) {
    const double* __restrict here = rows.from + (y + 1) * rows.pitch + 1;
    double* __restrict out = rows.to + (y + 1) * rows.pitch + 1;
    const double *north = here - rows.pitch, *south = here + rows.pitch, *west = here - 1, *east = here + 1;
    for (uint64_t x = x0; x < x1; ++x) out[x] = step(north[x], south[x], west[x], east[x], here[x]);
  }
}

void sweep_part(Part part, const Lattice& lattice, const double* from, double* to) {
  const Rows rows{from, to, lattice.pitch()};
  const uint64_t ny = lattice.count[Y], nx = lattice.count[X];
  if (part == Part::all) sweep_block(rows, 0, ny, 0, nx);
  if (part == Part::interior && ny > 2 && nx > 2) sweep_block(rows, 1, ny - 1, 1, nx - 1);
  if (part == Part::boundary) {
    const uint64_t cells = boundary_cells(ny, nx);
    for (uint64_t i = 0; i < cells; ++i) {
      const Cell cell = boundary_cell(i, ny, nx);
      rows.step_at(cell.y, cell.x);
    }
  }
}

}  // namespace

double* HostDevice::allocate(size_t doubles) {
  memory_.push_back(std::make_unique<double[]>(doubles));
  return memory_.back().get();
}

void HostDevice::copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

pw_stream HostDevice::queue(bool) { return calling_thread(); }

void HostDevice::wait(pw_stream) {}

void HostDevice::follow(pw_stream, pw_stream) {}  // one thread does all in order

// NOLINTNEXTLINE(performance-unnecessary-value-param): as a device with streams takes it
void HostDevice::enqueue(pw_stream, std::function<void()> work) { work(); }

void HostDevice::sweep(Part part, const Lattice& lattice, const double* from, double* to, pw_stream queue) {
  enqueue(queue, [=] { sweep_part(part, lattice, from, to); });
}

void HostDevice::pack_columns(const Lattice& lattice, const double* from, double* packed, pw_stream queue) {
  enqueue(queue, [=] {
    const uint64_t ny = lattice.count[Y], nx = lattice.count[X];
    for (uint64_t y = 0; y < ny; ++y) {
      packed[y] = from[(y + 1) * lattice.pitch() + 1];
      packed[ny + y] = from[(y + 1) * lattice.pitch() + nx];
    }
  });
}

void HostDevice::unpack_columns(const Lattice& lattice, const double* packed, double* to, pw_stream queue) {
  enqueue(queue, [=] {
    const uint64_t ny = lattice.count[Y], nx = lattice.count[X];
    const bool west = lattice.neighbour(X, Before) >= 0, east = lattice.neighbour(X, After) >= 0;
    for (uint64_t y = 0; y < ny; ++y) {
      if (west) to[(y + 1) * lattice.pitch()] = packed[y];
      if (east) to[(y + 1) * lattice.pitch() + nx + 1] = packed[ny + y];
    }
  });
}

void HostDevice::mark(pw_stream queue) {
  enqueue(queue, [this] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    marks_.push_back(std::chrono::duration<double, std::nano>(now).count());
  });
}

std::vector<double> HostDevice::marks() {
  std::vector<double> since(marks_.size());
  for (size_t i = 0; i < marks_.size(); ++i) since[i] = marks_[i] - marks_[0];
  marks_.clear();
  return since;
}

std::unique_ptr<Graph> HostDevice::capture(pw_stream, const std::function<void()>&) {
  throw Refused("stencil2d: the variant graph records a CUDA graph; it needs --device cuda.");
}

}  // namespace stencil
