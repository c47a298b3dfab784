// A collector that has hardly anything to wait for, so that objects move all the time.
#ifndef OFTEN_HPP
#define OFTEN_HPP

#include <firn.h>

inline firn_collecting often()
{
	firn_collecting how{};
	how.trigger = 1.02;
	how.target = 1.01;
	how.pages = FIRN_SMALL_PAGES;
	how.least_bytes = 1;
	how.interval_us = 50;
	return how;
}

#endif
