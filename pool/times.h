/* SPDX-License-Identifier: MIT */
/*
 * times.h - all times that pool/ counts by the clock, each with its rule. None of them says what a machine usually does: what a
 * send, a wake-up and a round trip cost is measured, and compared in costs.h. What users choose is in the settings.
 */
#ifndef HFI_TIMES_H
#define HFI_TIMES_H

#include "base/clock.h"

/* ---- lanes ---- */

#define HFI_FIT_NS   (1000 * HFI_MS) /* P10: a lane that idled longer asks for the server's role first */
#define HFI_PING_NS  (2000 * HFI_MS) /* a subscriber that received no byte for so long is asked whether it is there */
/* A road with longer round trips is another site's: it may be narrow, and a renewal would wait behind other lanes' dials. */
#define HFI_SLOW_NS  (10 * HFI_MS)
/* These six bound what costs.h says: on a busy machine a measure may be wrong for long. */
#define HFI_NEAR_MOST_NS    (1 * HFI_MS) /* who is further away is not near, whatever a send seems to cost */
#define HFI_GRACE_MOST_NS   (1 * HFI_MS) /* what is posted leaves within it (hf_lease_post_release) */
#define HFI_LOOK_MOST_NS    (1 * HFI_MS) /* who waits for a server that says nothing sleeps then; later by what our own threads use */
#define HFI_SLICE_NS        (1 * HFI_MS) /* Linux gives a program that computes one millisecond to four at a time */
#define HFI_OWN_MOST_NS     (100 * HFI_MS) /* what our own threads explain at most of a trip; of a yield twice that */
#define HFI_LEFT_MOST_NS    (1 * HFI_MS) /* what is left to a reader that has its CPU leaves within it, though the server says nothing */

#define HFI_TURN_NS         (10 * HFI_MS) /* a crowd's turn, at least: the shortest slice that another program has is a tenth of it */
#define HFI_HANG_UP_NS      (10 * HFI_MS) /* the reader's poll() has ended by then; else the listener acts */
#define HFI_UNWATCHED_NS    (10 * HFI_MS) /* what the kernel has no memory to watch is looked at so often */
#define HFI_CLOSING_TICK_NS (2 * HFI_MS)  /* user threads that drain a lane do not kick the listener: it looks so often */

/* ---- dialling ---- */

#define HFI_DIAL_FIRST_MS   50   /* after a second failed dial; doubled up to */
#define HFI_DIAL_MOST_MS    1000 /* this: a server that is back is found within it */
#define HFI_LASTED_NS       (1000 * HFI_MS) /* as long as that, a connection was of use */
#define HFI_LATELY_NS       (1000 * HFI_MS) /* after it a loss is forgotten */
#define HFI_BACKLOG_WAIT_NS (5 * HFI_MS)    /* a unix socket's backlog is full: nobody tells when it is not */
#define HFI_RACE_PAUSE_NS   (250 * HFI_MS)  /* between two addresses: RFC 8305, 5 */
#define HFI_LOOK_AGAIN_NS   (1000 * HFI_MS) /* a name is looked up no more often than its server is dialled */
#define HFI_SPREAD_LOCKS_NS (500 * HFI_MS)  /* by TLS, the dials of lock lanes that were lost together are spread so far, */
#define HFI_SPREAD_NS       (2000 * HFI_MS) /* and those of all others but the reserved lane */

/* ---- borrowed connections ---- */

#define HFI_CHECK_AFTER_NS    (30000 * HFI_MS) /* idle for longer: sent a PING before it is lent; PgBouncer's server_check_delay */
#define HFI_LEAK_AFTER_NS     (60000 * HFI_MS) /* out for longer: logged */
#define HFI_MAINTAIN_EVERY_NS (1000 * HFI_MS)  /* their ages are counted in seconds */

/* ---- sentinels ---- */

#define HFI_PATIENCE_NS     (100 * HFI_MS)   /* from the first answer to the decision: the others' answers are under way */
#define HFI_IDLE_NS         (10000 * HFI_MS) /* each sentinel is asked so often: a message may be lost */
#define HFI_ASK_NS          (1000 * HFI_MS)  /* and so often, while something is held, or replicas confirm */
#define HFI_HASTY_NS        (200 * HFI_MS)   /* and so often, where replicas confirm, while it matters who could be promoted */
#define HFI_YOUNG_NS        (20000 * HFI_MS) /* so long after a failover sentinels still find out who follows */
#define HFI_CLOCKS_PAUSE_NS (60000 * HFI_MS) /* clocks drift by some 6 ms in it, at 100 ppm */
/* So long a vote counts. Who was down is promoted no sooner: a sentinel has to hear from it again, win an election and turn it. */
#define HFI_FRESH_NS        (500 * HFI_MS)
#define HFI_RECENT_NS       (1250 * HFI_MS) /* they are asked once a second; a former primary is made to follow after ten */
/* So long a list counts: who is attached later is not in it. Three times as long as the next one is due after. */
#define HFI_LISTED_NS       (3000 * HFI_MS)

#endif
