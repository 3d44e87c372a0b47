/* A scalar reduction, a barrier and a reflect beside what MPI has for them, in turn in one run. It is
 * compiled by `mpicc -O2 -D_XCALABLEMP -Iinclude ... -lpeerway_xacc -lpeerway` and run by `mpirun -n 2
 * ./against_mpi`.
 *
 * Prints records as JSON lines: the median over batches of the mean of a batch, in microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peerway/xacc/runtime.h"
#include "peerway/xacc/xmp.h"

#define HERE (&(pwx_where){__FILE__, __LINE__})
enum { batches = 200, each = 200, width = 512, rows = 512 };

static double value = 1, sum;
static pwx_nodes p;
static pwx_template t;
static pwx_array a;
static pwx_halo halo;
static pwx_array* list[] = {&a};
static double (*mine)[width];
static MPI_Request requests[4];

static void our_sum(void) {
  sum = value;
  pwx_reduce(NULL, PWX_SUM, PWX_DOUBLE, &sum, 1, HERE);
}
static void their_sum(void) { MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void our_reflect(void) { pwx_reflect(&halo, 1, list, NULL, 0, HERE); }
static void their_reflect(void) {
  MPI_Startall(4, requests);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}
static void our_barrier(void) { pwx_barrier(NULL, HERE); }
static void their_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void compare(const char* operation, long bytes, void (*ours)(void), void (*theirs)(void)) {
  static double times[2][batches];
  void (*const both[])(void) = {ours, theirs};
  for (int batch = -10; batch < batches; ++batch)
    for (int which = 0; which < 2; ++which) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int i = 0; i < each; ++i) both[which]();
      if (batch >= 0) times[which][batch] = (MPI_Wtime() - start) / each * 1e6;
    }
  if (xmp_all_node_num() != 1) return;
  const char* names[] = {"peerway xacc", "mpi"};
  for (int which = 0; which < 2; ++which) {
    qsort(times[which], batches, sizeof(double), ascending);
    printf(
        "{\"test\": \"xacc_runtime\", \"operation\": \"%s\", \"by\": \"%s\", \"ranks\": %d, \"bytes\": %ld, "
        "\"p50_us\": %.3f, \"p10_us\": %.3f, \"p90_us\": %.3f, \"batches\": %d, \"iterations\": %d}\n",
        operation, names[which], xmp_all_num_nodes(), bytes, times[which][batches / 2],
        times[which][batches / 10], times[which][batches * 9 / 10], (int)batches, (int)each);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  pwx_begin(&argc, &argv);
  const int me = xmp_all_node_num() - 1, n = xmp_all_num_nodes();
  pwx_nodes_init(&p, "p", 1, (int[]){PWX_OPEN}, NULL, 0, HERE);
  pwx_template_init(&t, "t", 1, (long[]){0}, (long[]){rows - 1}, HERE);
  pwx_distribute(&t, &p, (pwx_kind[]){PWX_BLOCK}, NULL, NULL, HERE);
  pwx_array_init(&a, "a", sizeof(double), 2, (long[]){rows, width}, &t, (int[]){0, -1}, (long[]){0, 0},
                 (long[]){1, 0}, (long[]){1, 0}, HERE);
  const int own = rows / n, below = me > 0 ? me - 1 : MPI_PROC_NULL,
            above = me + 1 < n ? me + 1 : MPI_PROC_NULL;
  mine = calloc((size_t)own + 2, sizeof *mine);
  MPI_Recv_init(mine[0], width, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(mine[own + 1], width, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(mine[1], width, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[2]);
  MPI_Send_init(mine[own], width, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[3]);
  compare("reduction of a double", sizeof(double), our_sum, their_sum);
  if (sum != n) return 1;
  compare("barrier", 0, our_barrier, their_barrier);
  compare("reflect of a row", (long)sizeof *mine, our_reflect, their_reflect);
  pwx_barrier(NULL, HERE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
