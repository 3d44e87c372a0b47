// Eigenmodes of the discrete step, and the step written down once more in the plainest form.
#include "field.h"

#include <cmath>
#include <numbers>

#include "point.h"

namespace stencil {

namespace {

struct Wave {
  int number[2];  // of waves (periodic) or half waves (fixed) in Y and X
  double amplitude;
};
constexpr Wave kWaves[] = {{{1, 1}, 1.0}, {{2, 3}, 0.5}};
constexpr double kPhase[2] = {0.3, 0.7};  // of periodic waves, so that no face is zero

double frequency(const Lattice& lattice, const Wave& wave, Dim dim) {
  const double n = static_cast<double>(lattice.global[dim]);
  return wave.number[dim] * std::numbers::pi * (lattice.periodic ? 2 / n : 1 / (n + 1));
}

}  // namespace

Modes::Modes(const Lattice& lattice) : lattice_(lattice) {
  for (const Wave& wave : kWaves) {
    Mode mode{wave.amplitude, 1, {}};
    for (const Dim dim : {Y, X}) {
      const double omega = frequency(lattice, wave, dim);
      // cos(omega) - 1, without the cancellation of long waves
      mode.decay -= 4 * kDiffusion * std::sin(omega / 2) * std::sin(omega / 2);
      for (uint64_t i = 0; i < lattice.count[dim]; ++i) {
        const double place = static_cast<double>(lattice.first[dim] + i);
        mode.along[dim].push_back(lattice.periodic ? std::sin(omega * place + kPhase[dim])
                                                   : std::sin(omega * (place + 1)));
      }
    }
    modes_.push_back(std::move(mode));
  }
}

std::vector<double> Modes::after(uint64_t steps) const {
  std::vector<double> field(lattice_.cells());
  for (const Mode& mode : modes_) {
    const double amplitude = mode.amplitude * std::pow(mode.decay, static_cast<double>(steps));
    for (uint64_t y = 0; y < lattice_.count[Y]; ++y) {
      double* row = field.data() + (y + 1) * lattice_.pitch() + 1;
      const double factor = amplitude * mode.along[Y][y];
      for (uint64_t x = 0; x < lattice_.count[X]; ++x) row[x] += factor * mode.along[X][x];
    }
  }
  return field;
}

void run_serially(std::vector<double>& field, const uint64_t (&global)[2], bool periodic, uint64_t steps) {
  const uint64_t ny = global[Y], nx = global[X];
  std::vector<double> next(field.size());
  const auto at = [&](uint64_t y, uint64_t x) { return field[y * nx + x]; };
  for (uint64_t n = 0; n < steps; ++n) {
    for (uint64_t y = 0; y < ny; ++y) {
      for (uint64_t x = 0; x < nx; ++x) {
        const double north = y > 0 ? at(y - 1, x) : periodic ? at(ny - 1, x) : 0;
        const double south = y + 1 < ny ? at(y + 1, x) : periodic ? at(0, x) : 0;
        const double west = x > 0 ? at(y, x - 1) : periodic ? at(y, nx - 1) : 0;
        const double east = x + 1 < nx ? at(y, x + 1) : periodic ? at(y, 0) : 0;
        next[y * nx + x] = step(north, south, west, east, at(y, x));
      }
    }
    field.swap(next);
  }
}

}  // namespace stencil
