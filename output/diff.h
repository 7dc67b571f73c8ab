/* SPDX-License-Identifier: MIT
 *
 * diff: `aprof diff`: which functions have another share of one profile than of
 * another, and whether that is more than noise; a gate for CI.
 *
 * With --json one object (shares in per cent, changes and bounds in points):
 *
 *   aprof    version of this program
 *   format   1; changes when a key changes its meaning, not when keys come
 *   base     {processes,runs,windows,samples,covered_us,process_cpu_us,
 *            rate_asked{least,most},python,tags}
 *   new      the same
 *   notes    ["rates differ: 100 -> 250", ...]
 *   noise    {confidence_percent,tests}
 *   metrics  {NAME:{unit,by,base{total,blocks,blocks_are,looks},new{..},factor,
 *            shares[],appeared[],gone[]}}; blocks_are is runs, windows, processes
 *            or none; a share is {name,place,of,base,new,change,noise,is_beyond},
 *            of being self or total, noise null where it is not known; appeared
 *            and gone are {name,place,self,total}, of the side that has them
 *   gate     null without --fail-over, else {fail_over,has_failed,undecided,
 *            shares[{metric,name,place,of,change,noise}]}
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_DIFF_H
#define APROF_OUTPUT_DIFF_H

extern const char diff_help[];

/* argv[0] is "diff". Returns an exit status. */
int diff_main(int argc, char **argv);

#endif
