/* trig.h - circles, from + - * / and square roots alone.
 *
 * Model:     as in random.h: emulated events must be the same to the last bit on two hosts with
 *            different mathematical libraries. Good to a few units in the last place.
 * Threads:   pure functions.
 * Cost:      tens of nanoseconds. */
#ifndef SL_DETECTOR_TRIG_H
#define SL_DETECTOR_TRIG_H

/* Of an angle in turns, any. */
void sl_cos_sin(double turns, double *cosine, double *sine);

/* For |x| <= 0.8. */
double sl_asin(double x);

double sl_sinh(double x);

#endif
