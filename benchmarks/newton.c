// Newton's method for many values, each with the gradient through its iterations: a loop forward that
// keeps what the loop backward reads. The same start, tolerance and limit as loop_functions.py, which
// hands its constants over as macros.

#include <math.h>

double cube_roots(long n, const double *values, double *gradient) {
  double total = 0.0;
  for (long i = 0; i < n; i++) {
    double trail[MOST_ITERATIONS];
    double value = values[i], x = value, change = 1.0;
    int count = 0;
    while (fabs(change) > TOLERANCE && count < MOST_ITERATIONS) {
      trail[count++] = x;
      change = (x * x * x - value) / (3.0 * x * x);
      x -= change;
    }
    total += x;
    double ct = 1.0, ct_value = 0.0;
    while (count-- > 0) {
      x = trail[count];
      double slope = 3.0 * x * x;
      change = (x * x * x - value) / slope;
      ct_value += ct / slope;
      ct *= change * 6.0 * x / slope;
    }
    gradient[i] = ct_value + ct;
  }
  return total;
}

double anomalies(long n, const double *values, double *gradient) {
  double total = 0.0;
  for (long i = 0; i < n; i++) {
    double changes[MOST_ITERATIONS], sines[MOST_ITERATIONS], slopes[MOST_ITERATIONS];
    double value = values[i], x = value, change = 1.0;
    int count = 0;
    while (fabs(change) > TOLERANCE && count < MOST_ITERATIONS) {
      double sine = ECCENTRICITY * sin(x), slope = 1.0 - ECCENTRICITY * cos(x);
      change = (x - sine - value) / slope;
      changes[count] = change;
      sines[count] = sine;
      slopes[count++] = slope;
      x -= change;
    }
    total += x;
    double ct = 1.0, ct_value = 0.0;
    while (count-- > 0) {
      ct_value += ct / slopes[count];
      ct *= changes[count] * sines[count] / slopes[count];
    }
    gradient[i] = ct_value + ct;
  }
  return total;
}
