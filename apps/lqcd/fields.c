/* The fields of hop.f90: the links of the gauge field random:1, and the random spinor p of xacc.c. */
#include "gauge.h"

double random_element(int t, int z, int y, int x, int k);
double link_element(int mu, int t, int z, int y, int x, int k);

double random_element(int t, int z, int y, int x, int k) { return random_spinor(1, t, z, y, x, k); }

/* The links come one element at a time, and of one site several in turn: its last matrix is kept. */
double link_element(int mu, int t, int z, int y, int x, int k) {
  static const struct gauge gauge = {GAUGE_RANDOM, 1, "random:1", 0};
  static double link[LINK];
  static int of[5] = {-1};
  const int site[5] = {mu, t, z, y, x};
  if (memcmp(of, site, sizeof site) != 0) {
    memcpy(of, site, sizeof site);
    link_of(link, &gauge, mu, t, z, y, x);
  }
  return link[k];
}
