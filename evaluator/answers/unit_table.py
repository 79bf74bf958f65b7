"""The table of units: which spellings stand for which unit of the units library.

Sizes, dimensions and prefixes are the library's (pint); this file only says what is read as a
unit at all, so that nouns ("cats", "dozens") are not.
"""

METRIC = """
meter     m      meter meters metre metres
gram      g      gram grams gramme grammes gm
second    s      second seconds sec secs
ampere    A      ampere amperes amp amps
kelvin    K      kelvin kelvins
mole      mol    mole moles
candela   cd     candela candelas
liter     L,l    liter liters litre litres
joule     J      joule joules
watt      W      watt watts
volt      V      volt volts
ohm       Ω      ohm ohms
newton    N      newton newtons
pascal    Pa     pascal pascals
hertz     Hz     hertz
coulomb   C      coulomb coulombs
farad     F      farad farads
tesla     T      tesla teslas
weber     Wb     weber webers
henry     H      henry henries henrys
siemens   S      siemens
becquerel Bq     becquerel becquerels
gray      Gy     gray grays
sievert   Sv     sievert sieverts
lumen     lm     lumen lumens
lux       lx     lux
electron_volt eV electronvolt electronvolts
calorie   cal    calorie calories
bar       bar    bar bars
molar     M      molar
watt_hour Wh     watt-hour watthour watthours
byte      B      byte bytes
bit       b      bit bits
"""
"""Units that take prefixes: name in the library, symbols, long names."""

OTHERS = """
minute    min mins minute minutes
hour      h hr hrs hour hours
day       day days
week      week weeks wk wks
calendar_month month months
calendar_year  year years yr yrs
inch      in inch inches
foot      ft foot feet
yard      yd yds yard yards
mile      mi mile miles
nautical_mile nmi
light_year ly lightyear lightyears
parsec    pc parsec parsecs
astronomical_unit AU
angstrom  Å angstrom angstroms
acre      acre acres
hectare   ha hectare hectares
are       are ares
gallon    gal gals gallon gallons
quart     qt qts quart quarts
pint      pint pints
cup       cup cups
tablespoon tbsp tablespoon tablespoons
teaspoon  tsp teaspoon teaspoons
fluid_ounce floz
milliliter cc
pound     lb lbs pound pounds
ounce     oz ounce ounces
short_ton ton tons
metric_ton tonne tonnes
stone     stone stones
kilogram  kilo kilos
atmosphere atm atmosphere atmospheres
torr      torr
mmHg      mmHg
psi       psi
horsepower hp horsepower
dyne      dyne dynes
erg       erg ergs
kilometer kms
dalton    Da dalton daltons
degree_Celsius celsius centigrade
degree_Fahrenheit fahrenheit
angle_degree degree degrees deg degs
angle_minute arcminute arcminutes arcmin
angle_second arcsecond arcseconds arcsec
angle_radian radian radians rad rads
turn_full revolution revolutions rev revs turn turns
dollar    dollar dollars USD usd buck bucks
cent      cent cents
euro      euro euros EUR
pound_sterling GBP quid
yen       yen JPY
yuan      yuan CNY RMB rmb
rupee     rupee rupees INR
"""
"""Units without prefixes: name in the library, spellings."""

OWN_DEFINITIONS = (
    "calendar_month = [calendar]",
    "calendar_year = 12 * calendar_month",
    "angle_degree = [angle_in_degrees]",
    "angle_minute = angle_degree / 60",
    "angle_second = angle_degree / 3600",
    "angle_radian = [angle_in_radians]",
    "turn_full = [turns]",
    "dollar = [money_in_dollars]",
    "cent = dollar / 100",
    "euro = [money_in_euros]",
    "pound_sterling = [money_in_pounds]",
    "yen = [money_in_yen]",
    "yuan = [money_in_yuan]",
    "rupee = [money_in_rupees]",
)
"""Units that the library lacks, or knows in a way that no answer means (a month of 30.4 days)."""

PREFIXES = """
quetta Q, ronna R, yotta Y, zetta Z, exa E, peta P, tera T, giga G, mega M, kilo k, hecto h,
deca da, deci d, centi c, milli m, micro µ, nano n, pico p, femto f, atto a, zepto z, yocto y
"""
SHORT_FORMS = {
    "mph": "mile/hour",
    "kmh": "kilometer/hour",
    "kph": "kilometer/hour",
    "kmph": "kilometer/hour",
    "fps": "foot/second",
    "mpg": "mile/gallon",
    "rpm": "turn_full/minute",
    "bpm": "1/minute",
    "gpm": "gallon/minute",
    "sqft": "foot^2",
    "kcals": "kilocalorie",
}
WORDS_OF_POWERS = {
    "square": 2,
    "sq": 2,
    "squared": 2,
    "cubic": 3,
    "cu": 3,
    "cubed": 3,
    "cube": 3,
}
NO_UNITS = frozenset(["am", "pm", "AM", "PM", "Am", "Pm", "as", "As", "at", "a"])
"""Spellings that are words or times of the day more often than units."""
BESIDE_UNITS = frozenset(
    [
        "long", "wide", "tall", "high", "deep", "away", "old", "thick", "apart", "each", "total",
        "altogether", "remaining", "left", "ago", "exactly", "across", "around", "overall", "heavy",
    ]
)  # fmt: skip
"""Words after a unit that say what was measured."""
