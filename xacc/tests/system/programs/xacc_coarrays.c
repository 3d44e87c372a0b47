/* Transfers of coarrays between memories of GPUs, of hosts, or of one of each. */
// clang-format off: sections of images are no C
#include <openacc.h>
#include <stdio.h>
#include <unistd.h>
#include <xmp.h>

#define N 8
#define M 6

static double x[N][M]:[*], spare[N]:[*];
#pragma acc declare create(x)

static int failures;
#define CHECK(condition) \
  if (!(condition)) failures++, fprintf(stderr, "xacc_coarrays.c:%d: %s\n", __LINE__, #condition)

static double of(int image, int i, int j) { return image * 100 + i * M + j; }

/* Image 0 pauses: then its GPU has done what xmp_sync_all waited for, and the others use its memory. */
static void sync_all(int me) {
  xmp_sync_all(NULL);
  if (me == 0) usleep(10000);
}

int main(int argc, char** argv) {
  const int me = xmpc_this_image(), images = xmp_num_nodes();
  const int next = (me + 1) % images, previous = (me + images - 1) % images;
  double y[N][M], z[N];
  int on_gpu = argc < 2;
#pragma acc data create(y, z)
  {
    for (int i = 0; i < N; i++) z[i] = spare[i] = 1000 * me + i;
#pragma acc update device(z)
#pragma acc parallel loop collapse(2) present(x, y)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) {
        x[i][j] = -1;
        y[i][j] = me * 100 + i * M + j;
      }
    sync_all(me);

    /* From GPU to GPU: a section into the middle of another, in two dimensions; without braces. */
    if (images > 0)
#pragma acc host_data use_device(x, y)
      x[1:3][2:2]:[next] = y[4:3][0:2];
    /* From the host to a GPU: every second element; and a value. */
#pragma acc host_data use_device(x)
    {
      x[0:3:2][5]:[next] = z[0:3];
      x[7][0]:[next] = me + 0.5;
    }
    xmp_sync_all(NULL);
#pragma acc update self(x)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) {
        double right = -1;
        if (i >= 1 && i < 4 && j >= 2 && j < 4) right = of(previous, i + 3, j - 2);
        if (j == 5 && i < 6 && i % 2 == 0) right = 1000 * previous + i / 2;
        if (i == 7 && j == 0) right = previous + 0.5;
        CHECK(x[i][j] == right);
      }

    /* Back: rows in reverse from another GPU, one element to all, and to the host. */
#pragma acc parallel loop collapse(2) present(x)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) x[i][j] = 7 * me + i * M + j;
    sync_all(me);
    double seen[M];
#pragma acc host_data use_device(x, y, z) if (on_gpu)
    {
      y[0:4][0:M] = x[3:4:-1][0:M]:[next];
      z[0:N] = x[2][1]:[next];
    }
#pragma acc host_data use_device(x)
    {
      seen[0:M] = x[5][0:M]:[previous];
    }
    /* From this image's GPU to another image's host. */
#pragma acc host_data use_device(y)
    {
      spare[0:M]:[next] = y[0][0:M];
    }
    xmp_sync_all(NULL);
#pragma acc update self(y, z)
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < M; j++) CHECK(y[i][j] == 7 * next + (3 - i) * M + j);
    for (int i = 0; i < N; i++) CHECK(z[i] == 7 * next + 2 * M + 1);
    for (int j = 0; j < M; j++) {
      CHECK(seen[j] == 7 * previous + 5 * M + j);
      CHECK(spare[j] == 7 * ((previous + 1) % images) + 3 * M + j);
    }
  }
  xmp_sync_all(NULL);
  int all = failures;
#pragma xmp reduction(+ : all)
  if (me == 0) printf("%d wrong\n", all);
  return all != 0;
}
