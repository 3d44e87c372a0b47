/* Lattice QCD, by OpenACC and MPI: Wilson's Dirac operator D, conjugate gradients on D^dagger D, 12 point
 * sources and their correlator. docs/apps/lqcd.md says what is computed; H = g5 D, which is Hermitian, and
 * D^dagger D = H H. */
#include <mpi.h>

#include "hop.h"
#include "program.h"

/* The part of a process, without and with halos. */
#define LT (NT / PT)
#define LZ (NZ / PZ)
#define DT (LT + 2 * HT)
#define DZ (LZ + 2 * HZ)
#define FACE_T (LZ * NY * NX * SPINOR)
#define FACE_Z (LT * NY * NX * SPINOR)

static int rank, rank_t, rank_z;
static double u[4][DT][DZ][NY] ROW(LINK);
static double x[DT][DZ][NY] ROW(SPINOR), b[DT][DZ][NY] ROW(SPINOR), r[DT][DZ][NY] ROW(SPINOR),
    p[DT][DZ][NY] ROW(SPINOR), v[DT][DZ][NY] ROW(SPINOR), w[DT][DZ][NY] ROW(SPINOR);

/* The rows of the first and last z, and of the halos beyond them. */
static double sent[2][LT][NY] ROW(SPINOR), received[2][LT][NY] ROW(SPINOR);

/* The messages of the fields that hops read. */
struct messages {
  void* field;
  MPI_Request requests[8];
  int count;
} messages[4];

/* Wait until all that was started is done. */
static void finish(void) {
#pragma acc wait
  MPI_Barrier(MPI_COMM_WORLD);
}

static void prepare_pair(struct messages* m, double* out, int to, double* in, int from, int size, int tag) {
  MPI_Recv_init(in, size, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, &m->requests[m->count++]);
  MPI_Send_init(out, size, MPI_DOUBLE, to, tag, MPI_COMM_WORLD, &m->requests[m->count++]);
}

static void prepare_messages(struct messages* m, double field[DT][DZ][NY] ROW(SPINOR)) {
  const int before_t = (rank_t + PT - 1) % PT * PZ + rank_z, after_t = (rank_t + 1) % PT * PZ + rank_z;
  const int before_z = rank_t * PZ + (rank_z + PZ - 1) % PZ, after_z = rank_t * PZ + (rank_z + 1) % PZ;
  m->field = field;
#pragma acc host_data use_device(field, sent, received)
  {
    if (HT) {
      prepare_pair(m, (double*)field[HT][HZ], before_t, (double*)field[LT + HT][HZ], after_t, FACE_T, 0);
      prepare_pair(m, (double*)field[LT][HZ], after_t, (double*)field[0][HZ], before_t, FACE_T, 1);
    }
    if (HZ) {
      prepare_pair(m, (double*)sent[0], before_z, (double*)received[1], after_z, FACE_Z, 2);
      prepare_pair(m, (double*)sent[1], after_z, (double*)received[0], before_z, FACE_Z, 3);
    }
  }
}

static void halo(double field[DT][DZ][NY] ROW(SPINOR)) {
  struct messages* m = messages;
  if (!HT && !HZ) return;
  while (m->field != field) m++;
  if (HZ) {
#pragma acc parallel loop collapse(4) present(field[0 : DT], sent)
    for (int side = 0; side < 2; side++)
      for (int it = 0; it < LT; it++)
        for (int iy = 0; iy < NY; iy++)
          for (int i = 0; i < NX * SPINOR; i++)
            sent[side][it][iy] AT(i % NX, i / NX) = field[it + HT][side ? LZ : HZ][iy] AT(i % NX, i / NX);
  }
  MPI_Startall(m->count, m->requests);
  MPI_Waitall(m->count, m->requests, MPI_STATUSES_IGNORE);
  if (HZ) {
#pragma acc parallel loop collapse(4) present(field[0 : DT], received)
    for (int side = 0; side < 2; side++)
      for (int it = 0; it < LT; it++)
        for (int iy = 0; iy < NY; iy++)
          for (int i = 0; i < NX * SPINOR; i++)
            field[it + HT][side ? LZ + HZ : 0][iy] AT(i % NX, i / NX) =
                received[side][it][iy] AT(i % NX, i / NX);
  }
}

static double sum_of_all(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return value;
}

/* The links, and random numbers in p and r. */
static void load(const struct gauge* gauge) {
  for (int it = 0; it < DT; it++)
    for (int iz = 0; iz < DZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int ix = 0; ix < NX; ix++) {
          for (int mu = 0; mu < 4; mu++) {
            double link[LINK];
            link_of(link, gauge, mu, rank_t * LT + it - HT, rank_z * LZ + iz - HZ, iy, ix);
            for (int k = 0; k < LINK; k++) u[mu][it][iz][iy] AT(ix, k) = link[k];
          }
          for (int k = 0; k < SPINOR; k++) {
            p[it][iz][iy] AT(ix, k) =
                random_spinor(1, rank_t * LT + it - HT, rank_z * LZ + iz - HZ, iy, ix, k);
            r[it][iz][iy] AT(ix, k) =
                random_spinor(2, rank_t * LT + it - HT, rank_z * LZ + iz - HZ, iy, ix, k);
          }
        }
}

/* b: 1 at site 0 in element k; x = b. */
static void source(int element) {
#pragma acc parallel loop collapse(5) present(b, x)
  for (int it = HT; it < LT + HT; it++)
    for (int iz = HZ; iz < LZ + HZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int ix = 0; ix < NX; ix++)
          for (int k = 0; k < SPINOR; k++) {
            const double value = rank + it - HT + iz - HZ + iy + ix == 0 && k == element ? 1 : 0;
            b[it][iz][iy] AT(ix, k) = value;
            x[it][iz][iy] AT(ix, k) = value;
          }
}

/* to = H from, whose halo is up to date */
static void hop_sites(double to[DT][DZ][NY] ROW(SPINOR), double from[DT][DZ][NY] ROW(SPINOR)) {
#pragma acc parallel loop collapse(4) present(to[0 : DT], from[0 : DT], u)
  for (int it = HT; it < LT + HT; it++)
    for (int iz = HZ; iz < LZ + HZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int ix = 0; ix < NX; ix++) {
          const int tp = HT ? it + 1 : (it + 1) % LT, tm = HT ? it - 1 : (it + LT - 1) % LT;
          const int zp = HZ ? iz + 1 : (iz + 1) % LZ, zm = HZ ? iz - 1 : (iz + LZ - 1) % LZ;
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
static void hop(double to[DT][DZ][NY] ROW(SPINOR), double from[DT][DZ][NY] ROW(SPINOR)) {
  halo(from);
  hop_sites(to, from);
}

/* <p, v> */
static double dot(void) {
  double sum = 0;
#pragma acc parallel loop collapse(5) reduction(+ : sum) present(p, v)
  for (int it = HT; it < LT + HT; it++)
    for (int iz = HZ; iz < LZ + HZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++) sum += p[it][iz][iy][i][j] * v[it][iz][iy][i][j];
  return sum_of_all(sum);
}

/* r = p = b - v; gives |r|^2 */
static double residual(void) {
  double sum = 0;
#pragma acc parallel loop collapse(5) reduction(+ : sum) present(b, v, r, p)
  for (int it = HT; it < LT + HT; it++)
    for (int iz = HZ; iz < LZ + HZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++) {
            const double value = b[it][iz][iy][i][j] - v[it][iz][iy][i][j];
            r[it][iz][iy][i][j] = value;
            p[it][iz][iy][i][j] = value;
            sum += value * value;
          }
  return sum_of_all(sum);
}

/* x += alpha p; r -= alpha v; gives |r|^2 */
static double advance(double alpha) {
  double sum = 0;
#pragma acc parallel loop collapse(5) reduction(+ : sum) present(x, r, p, v)
  for (int it = HT; it < LT + HT; it++)
    for (int iz = HZ; iz < LZ + HZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++) {
            const double value = r[it][iz][iy][i][j] - alpha * v[it][iz][iy][i][j];
            x[it][iz][iy][i][j] += alpha * p[it][iz][iy][i][j];
            r[it][iz][iy][i][j] = value;
            sum += value * value;
          }
  return sum_of_all(sum);
}

/* p = r + beta p */
static void turn(double beta) {
#pragma acc parallel loop collapse(5) present(p, r)
  for (int it = HT; it < LT + HT; it++)
    for (int iz = HZ; iz < LZ + HZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++)
            p[it][iz][iy][i][j] = r[it][iz][iy][i][j] + beta * p[it][iz][iy][i][j];
}

/* values[t] += |x|^2 of the sites of t */
static void correlate(double values[NT]) {
  for (int it = HT; it < LT + HT; it++) {
    double sum = 0;
#pragma acc parallel loop collapse(4) reduction(+ : sum) present(x)
    for (int iz = HZ; iz < LZ + HZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int i = 0; i < OUTER; i++)
          for (int j = 0; j < INNER; j++) sum += x[it][iz][iy][i][j] * x[it][iz][iy][i][j];
    values[rank_t * LT + it - HT] += sum;
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
  MPI_Allreduce(MPI_IN_PLACE, correlator, NT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
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

static void set_up(void) {
  int size, local;
  MPI_Comm host;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != PT * PZ)
    refuse("a grid of PT x PZ processes", "was not started", "start PT x PZ, or compile with others");
  rank_t = rank / PZ, rank_z = rank % PZ;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &local);
  MPI_Comm_free(&host);
#ifdef _OPENACC
  const acc_device_t type = acc_get_device_type();
  if (type != acc_device_host) acc_set_device_num(local % acc_get_num_devices(type), type);
#endif
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct options options = options_of(argc, argv);
  set_up();
  struct results results = begin("openacc-mpi", rank == 0, &options, loops_run_on());
  load(&options.gauge);
#pragma acc enter data copyin(u, p, r) create(x, b, v, w, sent, received)
  prepare_messages(&messages[0], x);
  prepare_messages(&messages[1], p);
  prepare_messages(&messages[2], w);
  prepare_messages(&messages[3], r);
  if (options.check) check_hermitian(&results);
  if (options.sources) solve_all(&results, &options);
  if (options.repeat) {
    const int n = options.repeat;
    const struct speeds speeds = {seconds_of(time_hop, n), seconds_of(time_hop_with_halo, n),
                                  seconds_of(time_algebra, n)};
    tell_speeds(&results, &options, speeds);
  }
  const int status = end(&results);
  MPI_Finalize();
  return status;
}
