"""People of the sample schools: Nigerian names as they are written, with all their marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from school_service.core.genders import FEMALE, GENDERS, MALE
from school_service.features.people.usernames import plain


@dataclass(frozen=True)
class Names:
    """The names of one people: of daughters, sons and families."""

    female: tuple[str, ...]
    male: tuple[str, ...]
    family: tuple[str, ...]


YORUBA = Names(
    female=(
        "Adébísí",
        "Fọlákẹ́",
        "Títílayọ̀",
        "Ṣadé",
        "Bọ́lánlé",
        "Yétúndé",
        "Ọmọ́lará",
        "Ìyábọ̀",
        "Morẹ́nikẹ́",
        "Àbíkẹ́",
        "Ọláìtán",
        "Simisọ́lá",
    ),
    male=(
        "Adéwálé",
        "Olúwaṣeun",
        "Babátúndé",
        "Kẹ́hìndé",
        "Táíwò",
        "Ayọ̀délé",
        "Ọlámidé",
        "Fẹ́mi",
        "Ṣẹ́gun",
        "Túnjí",
        "Dámiláre",
        "Akínwándé",
    ),
    family=(
        "Adébáyọ̀",
        "Ọlátúnjí",
        "Akíndélé",
        "Àjàyí",
        "Ògúnlẹ́yẹ",
        "Babalọlá",
        "Adéyẹmí",
        "Afọlábí",
        "Ọláníyan",
        "Òjó",
        "Fálànà",
        "Adélékè",
    ),
)
IGBO = Names(
    female=(
        "Adaeze",
        "Chiamaka",
        "Ngọzi",
        "Ifeọma",
        "Chinyere",
        "Nkechi",
        "Ọbịageli",
        "Ụzọamaka",
        "Amarachi",
        "Kọsisọchukwu",
        "Nneọma",
        "Ọgechi",
    ),
    male=(
        "Chukwuemeka",
        "Ikechukwu",
        "Obinna",
        "Kelechi",
        "Chinedu",
        "Ụchenna",
        "Ifeanyị",
        "Nnamdị",
        "Kenechukwu",
        "Ọkwudịlị",
        "Tobechukwu",
        "Ebuka",
    ),
    family=(
        "Okafọ",
        "Nwachukwu",
        "Eze",
        "Ọkọnkwọ",
        "Nwosu",
        "Anyanwụ",
        "Ụzọma",
        "Ibekwe",
        "Onyekwere",
        "Ọnụọha",
        "Nwankwọ",
        "Azụbuike",
    ),
)
HAUSA = Names(
    female=(
        "Hauwa'u",
        "Zainab",
        "Amina",
        "Fatima",
        "Maryam",
        "Hadiza",
        "A'isha",
        "Ruƙayya",
        "Bilkisu",
        "Rabi'atu",
        "Sa'adatu",
        "Halima",
    ),
    male=(
        "Abdullahi",
        "Musa",
        "Ibrahim",
        "Sani",
        "Usman",
        "Yaƙubu",
        "Garba",
        "Aminu",
        "Mu'azu",
        "Ɗanjuma",
        "Sulaiman",
        "Nuhu",
    ),
    family=(
        "Bello",
        "Ɗantata",
        "Abubakar",
        "Ƴar'adua",
        "Lawal",
        "Shehu",
        "Tanko",
        "Ɗankwambo",
        "Maigari",
        "Gwarzo",
        "Ɓello",
        "Inuwa",
    ),
)
TIV = Names(
    female=("Dooshima", "Wandoo", "Kashimana", "Doosuur", "Hembafan", "Iember", "Mbakeren", "Ngunan"),
    male=("Terver", "Aondoakaa", "Terkimbi", "Iorwuese", "Msughter", "Tersoo", "Orduen", "Aondowase"),
    family=("Torkula", "Iorshase", "Gbande", "Ayua", "Aper", "Ikyer", "Agber", "Tyôgo"),
)
EFIK = Names(
    female=("Ekaette", "Arit", "Nkoyo", "Afiọñ", "Uduak", "Mfọn", "Idara", "Ini-Obong"),
    male=("Ẹkpẹnyọñ", "Effiọm", "Ọkọn", "Edet", "Bassey", "Ubọñ", "Ndifreke", "Ẹtim"),
    family=("Essien", "Asuquo", "Ẹkanem", "Inyañ", "Archibong", "Ukpọñ", "Ọffiọñ", "Umoh"),
)
EDO = Names(
    female=("Isokẹn", "Ivie", "Ẹsohe", "Itohan", "Osarugue", "Ẹfe", "Aisosa", "Omosede"),
    male=("Osaro", "Ọsarẹtin", "Ẹfosa", "Ehigie", "Nosakhare", "Uyi", "Osagie", "Iyobosa"),
    family=("Igbinẹdion", "Aigbe", "Omoregie", "Ẹhigiator", "Idahosa", "Ọsayande", "Uwaifo", "Ẹdosa"),
)


@dataclass(frozen=True)
class Person:
    """A person with a name and a gender; `names` are their people's, for their kin."""

    first_name: str
    middle_name: str
    last_name: str
    gender: str
    names: Names

    @property
    def full_name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}"

    @property
    def plain_name(self) -> str:
        """First and last name in plain letters, for usernames and e-mail addresses: `fatima.yaradua`."""
        return f"{plain(self.first_name)}.{plain(self.last_name)}"


class Population:
    """Makes up people, the same ones for the same seed and no name twice.

    `peoples` has the weight of each people.
    """

    def __init__(self, random: Random, peoples: Sequence[tuple[Names, int]]) -> None:
        self.random = random
        self._peoples = [names for names, weight in peoples for _ in range(weight)]
        self._known: set[str] = set()

    def person(self, gender: str | None = None) -> Person:
        """Make up somebody new."""
        while True:
            names = self.random.choice(self._peoples)
            made = self._person(
                names, self.random.choice(names.family), gender or self.random.choice(GENDERS)
            )
            if made.plain_name not in self._known:
                self._known.add(made.plain_name)
                return made

    def parent(self, child: Person) -> Person:
        """Make up the mother or the father of somebody, with another first name."""
        while True:
            made = self._person(child.names, child.last_name, self.random.choice(GENDERS))
            if made.first_name != child.first_name:
                return made

    def spouse(self, person: Person) -> Person:
        """Make up the wife or the husband of somebody."""
        return self._person(person.names, person.last_name, MALE if person.gender == FEMALE else FEMALE)

    def phone_number(self) -> str:
        """Make up a Nigerian mobile number."""
        prefix = self.random.choice(("803", "805", "806", "813", "816", "703", "706", "810", "909"))
        return f"+234{prefix}{self.random.randrange(10**7):07d}"

    def birthday(self, year: int) -> date:
        """Make up a day of birth in a year."""
        return date(year, 1, 1) + timedelta(days=self.random.randrange(365))

    def _person(self, names: Names, last_name: str, gender: str) -> Person:
        given = names.female if gender == FEMALE else names.male
        first_name, middle_name = self.random.sample(given, 2)
        return Person(first_name, middle_name, last_name, gender, names)
