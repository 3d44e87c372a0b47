/* The main function of the hop alone, in the place of that of xacc.c: it prints a number of all bits of H p,
 * as hop.f90 does, and the time of a hop. The two are compared by xacc/tests/shared/fc_times.py, which writes
 * xacc.c with this function. */
int main(int argc, char** argv) {
  const struct gauge gauge = {GAUGE_RANDOM, 1, "random:1", 0};
  const int repeat = argc > 1 ? atoi(argv[1]) : 1;
  unsigned long bits = 0;
  load(&gauge);
#pragma acc enter data copyin(u, p) create(v)
#pragma xmp reflect(u) width(0, / periodic / HT : 0, / periodic / HZ : 0, 0, 0, 0) orthogonal acc
  hop(v, p);
  finish();
  const double start = seconds_now();
  for (int i = 0; i < repeat; i++) hop(v, p);
  finish();
  const double seconds = seconds_now() - start;
#pragma acc exit data copyout(v) delete(u, p)
#pragma xmp loop(it, iz) on lattice(iz, it) reduction(^ : bits)
  for (int it = 0; it < NT; it++)
    for (int iz = 0; iz < NZ; iz++)
      for (int iy = 0; iy < NY; iy++)
        for (int ix = 0; ix < NX; ix++)
          for (int k = 0; k < SPINOR; k++) {
            const int turn = (k + 5 * ix + 11 * iy + 23 * iz + 37 * it) % 64;
            unsigned long word;
            memcpy(&word, &v[it][iz][iy] AT(ix, k), sizeof word);
            bits ^= turn ? word << turn | word >> (64 - turn) : word;
          }
#pragma xmp task on processes(1, 1)
  {
    printf("bits %016lX\n", bits);
    fprintf(stderr, "%.6f s a hop\n", seconds / repeat);
  }
  return 0;
}
