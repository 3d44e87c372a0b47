/* The arithmetic of one site of the hop, as macros, so that each compiler of directives sees loops over
 * plain variables.
 *
 * (1 - g_mu) psi has two independent spin components, called h; the other two are these times 1, -1, i or
 * -i. Only h is multiplied by a link, which gives g, and g is added to all four components. Two rows of a
 * link are read (two columns for its adjoint); the third is the conjugate cross product of them. A loop
 * body declares HOP_LOCALS, and may define how an element is read. */
#ifndef LQCD_HOP_H
#define LQCD_HOP_H

#define HOP_LOCALS                                         \
  double sum[4][3][2], h[2][3][2], g[2][3][2], m[3][3][2]; \
  for (int s = 0; s < 4; s++)                              \
    for (int c = 0; c < 3; c++) sum[s][c][0] = sum[s][c][1] = 0.0

/* re + i im = element (j, c) of the site x of a row. */
#ifndef HOP_READ
#define HOP_READ(row, x, j, c, re, im)              \
  const double re = row AT(x, ((j) * 3 + (c)) * 2); \
  const double im = row AT(x, ((j) * 3 + (c)) * 2 + 1)
#endif

/* The terms that a + f b adds to the real and the imaginary part of a, for f = 1, -1, i, -i. */
#define ONE_RE(re, im) +re
#define ONE_IM(re, im) +im
#define MINUS_RE(re, im) -re
#define MINUS_IM(re, im) -im
#define I_RE(re, im) -im
#define I_IM(re, im) +re
#define MINUS_I_RE(re, im) +im
#define MINUS_I_IM(re, im) -re

/* h[j] = psi[j] + factor psi[other] */
#define PROJECT(j, factor, other, row, x)              \
  for (int c = 0; c < 3; c++) {                        \
    HOP_READ(row, x, j, c, re, im);                    \
    HOP_READ(row, x, other, c, others_re, others_im);  \
    h[j][c][0] = re factor##_RE(others_re, others_im); \
    h[j][c][1] = im factor##_IM(others_re, others_im); \
  }

/* h = 2 psi[first], 2 psi[first + 1]: along t. */
#define TWICE(first, row, x)                    \
  for (int j = 0; j < 2; j++)                   \
    for (int c = 0; c < 3; c++) {               \
      HOP_READ(row, x, first + j, c, re, im);   \
      h[j][c][0] = 2 * re, h[j][c][1] = 2 * im; \
    }

/* sum[s] += factor g[j] */
#define COLLECT(s, factor, j)                                        \
  for (int c = 0; c < 3; c++) {                                      \
    sum[s][c][0] = sum[s][c][0] factor##_RE(g[j][c][0], g[j][c][1]); \
    sum[s][c][1] = sum[s][c][1] factor##_IM(g[j][c][0], g[j][c][1]); \
  }

#define THIRD_OF_LINK                                                                          \
  for (int d = 0; d < 3; d++) {                                                                \
    const int a = (d + 1) % 3, b = (d + 2) % 3;                                                \
    m[2][d][0] = m[0][a][0] * m[1][b][0] - m[0][a][1] * m[1][b][1] - m[0][b][0] * m[1][a][0] + \
                 m[0][b][1] * m[1][a][1];                                                      \
    m[2][d][1] = m[0][b][0] * m[1][a][1] + m[0][b][1] * m[1][a][0] - m[0][a][0] * m[1][b][1] - \
                 m[0][a][1] * m[1][b][0];                                                      \
  }

/* g = U h, by rows of U. */
#define TIMES_LINK(row, x)                                                                       \
  for (int c = 0; c < 2; c++)                                                                    \
    for (int d = 0; d < 3; d++) {                                                                \
      HOP_READ(row, x, c, d, re, im);                                                            \
      m[c][d][0] = re, m[c][d][1] = im;                                                          \
    }                                                                                            \
  THIRD_OF_LINK                                                                                  \
  for (int j = 0; j < 2; j++)                                                                    \
    for (int c = 0; c < 3; c++) {                                                                \
      g[j][c][0] = m[c][0][0] * h[j][0][0] - m[c][0][1] * h[j][0][1] + m[c][1][0] * h[j][1][0] - \
                   m[c][1][1] * h[j][1][1] + m[c][2][0] * h[j][2][0] - m[c][2][1] * h[j][2][1];  \
      g[j][c][1] = m[c][0][0] * h[j][0][1] + m[c][0][1] * h[j][0][0] + m[c][1][0] * h[j][1][1] + \
                   m[c][1][1] * h[j][1][0] + m[c][2][0] * h[j][2][1] + m[c][2][1] * h[j][2][0];  \
    }

/* g = U^dagger h, by columns of U. */
#define TIMES_ADJOINT(row, x)                                                                    \
  for (int c = 0; c < 2; c++)                                                                    \
    for (int d = 0; d < 3; d++) {                                                                \
      HOP_READ(row, x, d, c, re, im);                                                            \
      m[c][d][0] = re, m[c][d][1] = im;                                                          \
    }                                                                                            \
  THIRD_OF_LINK                                                                                  \
  for (int j = 0; j < 2; j++)                                                                    \
    for (int c = 0; c < 3; c++) {                                                                \
      g[j][c][0] = m[c][0][0] * h[j][0][0] + m[c][0][1] * h[j][0][1] + m[c][1][0] * h[j][1][0] + \
                   m[c][1][1] * h[j][1][1] + m[c][2][0] * h[j][2][0] + m[c][2][1] * h[j][2][1];  \
      g[j][c][1] = m[c][0][0] * h[j][0][1] - m[c][0][1] * h[j][0][0] + m[c][1][0] * h[j][1][1] - \
                   m[c][1][1] * h[j][1][0] + m[c][2][0] * h[j][2][1] - m[c][2][1] * h[j][2][0];  \
    }

/* f0, f1: the factors of h; f2, f3: the factors with which g[j2], g[j3] are added to components 2 and 3. */
#define HOP(times, link, lx, row, x, f0, other0, f1, other1, f2, j2, f3, j3)                        \
  {PROJECT(0, f0, other0, row, x) PROJECT(1, f1, other1, row, x) times(link, lx) COLLECT(0, ONE, 0) \
       COLLECT(1, ONE, 1) COLLECT(2, f2, j2) COLLECT(3, f3, j3)}

/* From x + 1 (forward), from x - 1 (backward), and so on. Arguments: the row of links and its x, that of
 * spinors. */
#define FORWARD_X(link, lx, row, x) HOP(TIMES_LINK, link, lx, row, x, I, 3, I, 2, MINUS_I, 1, MINUS_I, 0)
#define BACKWARD_X(link, lx, row, x) HOP(TIMES_ADJOINT, link, lx, row, x, MINUS_I, 3, MINUS_I, 2, I, 1, I, 0)
#define FORWARD_Y(link, lx, row, x) HOP(TIMES_LINK, link, lx, row, x, ONE, 3, MINUS, 2, MINUS, 1, ONE, 0)
#define BACKWARD_Y(link, lx, row, x) HOP(TIMES_ADJOINT, link, lx, row, x, MINUS, 3, ONE, 2, ONE, 1, MINUS, 0)
#define FORWARD_Z(link, lx, row, x) HOP(TIMES_LINK, link, lx, row, x, I, 2, MINUS_I, 3, MINUS_I, 0, I, 1)
#define BACKWARD_Z(link, lx, row, x) HOP(TIMES_ADJOINT, link, lx, row, x, MINUS_I, 2, I, 3, I, 0, MINUS_I, 1)
#define FORWARD_T(link, lx, row, x) \
  {TWICE(2, row, x) TIMES_LINK(link, lx) COLLECT(2, ONE, 0) COLLECT(3, ONE, 1)}
#define BACKWARD_T(link, lx, row, x) \
  {TWICE(0, row, x) TIMES_ADJOINT(link, lx) COLLECT(0, ONE, 0) COLLECT(1, ONE, 1)}

#endif
