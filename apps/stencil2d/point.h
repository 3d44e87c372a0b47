// What the CPU and the GPU compute alike: one step at one cell, and which cells are the boundary.
#ifndef STENCIL2D_POINT_H
#define STENCIL2D_POINT_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define STENCIL_BOTH __host__ __device__
#else
#define STENCIL_BOTH
#endif

namespace stencil {

using Count = unsigned long long;

// A power of two: products with it are exact, so that a fused multiply-add rounds as a product and a sum do,
// and all builds on all devices give the same bits. Stable up to 1/4.
constexpr double kDiffusion = 0.125;

STENCIL_BOTH inline double step(double north, double south, double west, double east, double here) {
  return here + kDiffusion * (((north + south) + (west + east)) - 4.0 * here);
}

struct Cell {
  Count y, x;
};

/// The number of cells whose step reads the shadow: the outermost ones.
STENCIL_BOTH inline Count boundary_cells(Count ny, Count nx) {
  return ny <= 2 || nx <= 2 ? ny * nx : 2 * nx + 2 * (ny - 2);
}

/// The i-th of them: the first row, the last row, the columns between.
STENCIL_BOTH inline Cell boundary_cell(Count i, Count ny, Count nx) {
  if (ny <= 2 || nx <= 2) return {i / nx, i % nx};
  if (i < nx) return {0, i};
  if (i < 2 * nx) return {ny - 1, i - nx};
  i -= 2 * nx;
  return i < ny - 2 ? Cell{i + 1, 0} : Cell{i - (ny - 2) + 1, nx - 1};
}

}  // namespace stencil

#endif
