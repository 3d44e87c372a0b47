/* The transformational intrinsics, between arrays of different mappings; and what mpi.h has without an MPI.
 */
#include <mpi.h>

#include "check.h"

#define N 37

#pragma xmp nodes p[*]
#pragma xmp template t[N]
#pragma xmp distribute t[block] onto p
#pragma xmp template u[5][N]
#pragma xmp distribute u[*][cyclic(3)] onto p
static int a[N], b[N], mask[N];
static double m[5][N], n[N][5], x[5][5];
#pragma xmp template v[N][5]
#pragma xmp distribute v[block][*] onto p
#pragma xmp template w[5][5]
#pragma xmp distribute w[block][*] onto p
#pragma xmp align a[i] with t[i]
#pragma xmp align mask[i] with t[i]
#pragma xmp align b[i] with t[i]
#pragma xmp align m[i][j] with u[i][j]
#pragma xmp align n[i][j] with v[i][j]
#pragma xmp align x[i][j] with w[i][j]
/* Elements chosen by a mask, or by index arrays. */
static void masks(void) {
  int off = 0;
#pragma xmp loop on t[i]
  for (int i = 0; i < N; i++) {
    a[i] = 10 * i;
    mask[i] = i % 3 == 0;
    b[i] = -1;
  }
  xmp_pack(xmp_desc_of(b), xmp_desc_of(a), xmp_desc_of(mask));
#pragma xmp loop on t[i] reduction(+ : off)
  for (int i = 0; i < N; i++) off += b[i] != (3 * i < N ? 30 * i : -1);
  xmp_unpack(xmp_desc_of(a), xmp_desc_of(b), xmp_desc_of(mask));
#pragma xmp loop on t[i] reduction(+ : off)
  for (int i = 0; i < N; i++) off += a[i] != 10 * i;
#pragma xmp loop on t[i]
  for (int i = 0; i < N; i++) mask[i] = (i + 5) % N;
  xmp_gather(xmp_desc_of(b), xmp_desc_of(a), xmp_desc_of(mask));
#pragma xmp loop on t[i] reduction(+ : off)
  for (int i = 0; i < N; i++) off += b[i] != 10 * ((i + 5) % N);
  xmp_scatter(xmp_desc_of(a), xmp_desc_of(b), xmp_desc_of(mask));
#pragma xmp loop on t[i] reduction(+ : off)
  for (int i = 0; i < N; i++) off += a[i] != 10 * i;
  CHECK(off == 0);
}

void intrinsics(void) {
  int off = 0;
#pragma xmp loop on t[i]
  for (int i = 0; i < N; i++) a[i] = (i * 7) % N;
  xmp_sort_up(xmp_desc_of(a), xmp_desc_of(b));
#pragma xmp loop on t[i] reduction(+ : off)
  for (int i = 0; i < N; i++) off += b[i] != i;
  xmp_sort_down(xmp_desc_of(a), xmp_desc_of(b));
#pragma xmp loop on t[i] reduction(+ : off)
  for (int i = 0; i < N; i++) off += b[i] != N - 1 - i;
#pragma xmp loop(i, j) on u[i][j]
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < N; j++) m[i][j] = i + j;
  xmp_transpose(xmp_desc_of(n), xmp_desc_of(m), 0);
  xmp_matmul(xmp_desc_of(x), xmp_desc_of(m), xmp_desc_of(n));
#pragma xmp loop(i, j) on w[i][j] reduction(+ : off)
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 5; j++) {
      double s = 0;
      for (int k = 0; k < N; k++) s += (i + k) * (double)(j + k);
      off += x[i][j] != s;
    }
  CHECK(off == 0);
  masks();
  int rank = -1, size = 0, length = 0;
  char name[MPI_MAX_PROCESSOR_NAME];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(name, &length);
  CHECK(rank == xmp_all_node_num() - 1 && size == xmp_all_num_nodes() && length > 0);
  CHECK(MPI_Wtime() > 0);
}
