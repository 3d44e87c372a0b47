/* Lattice QCD, sequential: Wilson's Dirac operator D, conjugate gradients on D^dagger D, 12 point sources and
 * their correlator. docs/apps/lqcd.md says what is computed; H = g5 D, which is Hermitian, and D^dagger D = H
 * H. */
#include "hop.h"
#include "program.h"

static double u[4][NT][NZ][NY] ROW(LINK);
static double x[NT][NZ][NY] ROW(SPINOR), b[NT][NZ][NY] ROW(SPINOR), r[NT][NZ][NY] ROW(SPINOR),
    p[NT][NZ][NY] ROW(SPINOR), v[NT][NZ][NY] ROW(SPINOR), w[NT][NZ][NY] ROW(SPINOR);

/* Wait until all that was started is done. */
static void finish(void) {}

/* The links, and random numbers in p and r. */
static void load(const struct gauge* gauge) {
  for (int it = 0; it < NT; it++)
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int ix = 0; ix < NX; ix++) {
          for (int mu = 0; mu < 4; mu++) {
            double link[LINK];
            link_of(link, gauge, mu, it, iz, iy, ix);
            for (int k = 0; k < LINK; k++) u[mu][it][iz][iy] AT(ix, k) = link[k];
          }
          for (int k = 0; k < SPINOR; k++) {
            p[it][iz][iy] AT(ix, k) = random_spinor(1, it, iz, iy, ix, k);
            r[it][iz][iy] AT(ix, k) = random_spinor(2, it, iz, iy, ix, k);
          }
        }
}

/* b: 1 at site 0 in element k; x = b. */
static void source(int element) {
  for (int it = 0; it < NT; it++)
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int ix = 0; ix < NX; ix++)
          for (int k = 0; k < SPINOR; k++) {
            const double value = it + iz + iy + ix == 0 && k == element ? 1 : 0;
            b[it][iz][iy] AT(ix, k) = value;
            x[it][iz][iy] AT(ix, k) = value;
          }
}

/* to = H from, whose halo is up to date */
static void hop_sites(double to[NT][NZ][NY] ROW(SPINOR), double from[NT][NZ][NY] ROW(SPINOR)) {
  for (int it = 0; it < NT; it++)
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int ix = 0; ix < NX; ix++) {
          const int tp = (it + 1) % NT, tm = (it + NT - 1) % NT;
          const int zp = (iz + 1) % NZ, zm = (iz + NZ - 1) % NZ;
          const int yp = (iy + 1) % NY, ym = (iy + NY - 1) % NY;
          const int xp = (ix + 1) % NX, xm = (ix + NX - 1) % NX;
          HOP_LOCALS;
          FORWARD_X(u[0][it][iz][iy], ix, from[it][iz][iy], xp)
          BACKWARD_X(u[0][it][iz][iy], xm, from[it][iz][iy], xm)
          FORWARD_Y(u[1][it][iz][iy], ix, from[it][iz][yp], ix)
          BACKWARD_Y(u[1][it][iz][ym], ix, from[it][iz][ym], ix)
          FORWARD_Z(u[2][it][iz][iy], ix, from[it][zp][iy], ix)
          BACKWARD_Z(u[2][it][zm][iy], ix, from[it][zm][iy], ix)
          FORWARD_T(u[3][it][iz][iy], ix, from[tp][iz][iy], ix)
          BACKWARD_T(u[3][tm][iz][iy], ix, from[tm][iz][iy], ix)
          for (int s = 0; s < 4; s++)
            for (int c = 0; c < 3; c++) {
              const int k = (s * 3 + c) * 2, other = (s + 2) % 4;
              const int flipped = (other * 3 + c) * 2;
              to[it][iz][iy] AT(ix, k) = from[it][iz][iy] AT(ix, flipped) - KAPPA * sum[other][c][0];
              to[it][iz][iy] AT(ix, k + 1) = from[it][iz][iy] AT(ix, flipped + 1) - KAPPA * sum[other][c][1];
            }
        }
}

/* to = H from */
static void hop(double to[NT][NZ][NY] ROW(SPINOR), double from[NT][NZ][NY] ROW(SPINOR)) {
  hop_sites(to, from);
}

/* <p, v> */
static double dot(void) {
  double sum = 0;
  for (int it = 0; it < NT; it++)
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++) sum += p[it][iz][iy][i][j] * v[it][iz][iy][i][j];
  return sum;
}

/* r = p = b - v; gives |r|^2 */
static double residual(void) {
  double sum = 0;
  for (int it = 0; it < NT; it++)
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++) {
            const double value = b[it][iz][iy][i][j] - v[it][iz][iy][i][j];
            r[it][iz][iy][i][j] = value;
            p[it][iz][iy][i][j] = value;
            sum += value * value;
          }
  return sum;
}

/* x += alpha p; r -= alpha v; gives |r|^2 */
static double advance(double alpha) {
  double sum = 0;
  for (int it = 0; it < NT; it++)
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++) {
            const double value = r[it][iz][iy][i][j] - alpha * v[it][iz][iy][i][j];
            x[it][iz][iy][i][j] += alpha * p[it][iz][iy][i][j];
            r[it][iz][iy][i][j] = value;
            sum += value * value;
          }
  return sum;
}

/* p = r + beta p */
static void turn(double beta) {
  for (int it = 0; it < NT; it++)
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++)
            p[it][iz][iy][i][j] = r[it][iz][iy][i][j] + beta * p[it][iz][iy][i][j];
}

/* values[t] += |x|^2 of the sites of t */
static void correlate(double values[NT]) {
  for (int it = 0; it < NT; it++) {
    double sum = 0;
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++) sum += x[it][iz][iy][i][j] * x[it][iz][iy][i][j];
    values[it] += sum;
  }
}

/* x with H H x = b; gives the index of the last iteration, or -1. */
static int solve(void) {
  hop(w, x);
  hop(v, w);
  double size = residual();
  const double wanted = ENORM; /* |b| = 1 */
  for (int n = 0; n < MOST_ITERATIONS; n++) {
    hop(w, p);
    hop(v, w);
    const double before = size;
    size = advance(size / dot());
    if (size < wanted) return n;
    turn(size / before);
  }
  return -1;
}

static void solve_all(struct results* results, const struct options* options) {
  double correlator[NT] = {0};
  for (int n = 0; n < options->sources; n++) {
    const int colour = n / 4, spin = n % 4;
    source((spin * 3 + colour) * 2);
    finish();
    const double start = seconds_now();
    const int last = solve();
    finish();
    const double seconds = seconds_now() - start;
    hop(w, x);
    hop(v, w);
    tell_solve(results, colour, spin, last, residual(), seconds);
    correlate(correlator);
  }
  tell_correlator(results, options, correlator);
}

/* <p, H r> = <r, H p> for the real part of the product: as H is linear over complex numbers, it is Hermitian.
 */
static void check_hermitian(struct results* results) {
  hop(v, r);
  const double one = dot();
  hop(v, p);
  turn(0); /* p = r */
  tell_check(results, "g5-hermiticity", fabs(one - dot()) / (SITES * SPINOR), 1e-12);
}

/* The timed parts. */
static void time_hop(void) { hop_sites(v, p); }
static void time_hop_with_halo(void) { hop(v, p); }
static void time_algebra(void) { dot(), advance(0), turn(0); }

static double seconds_of(void (*part)(void), int repeat) {
  part();
  finish();
  const double start = seconds_now();
  for (int i = 0; i < repeat; i++) part();
  finish();
  return (seconds_now() - start) / repeat;
}

int main(int argc, char** argv) {
  const struct options options = options_of(argc, argv);
  struct results results = begin("serial", 1, &options, "CPU");
  load(&options.gauge);
  if (options.check) check_hermitian(&results);
  if (options.sources) solve_all(&results, &options);
  if (options.repeat) {
    const int n = options.repeat;
    const struct speeds speeds = {seconds_of(time_hop, n), seconds_of(time_hop_with_halo, n),
                                  seconds_of(time_algebra, n)};
    tell_speeds(&results, &options, speeds);
  }
  return end(&results);
}
