//! Stop words: words too common to say what a text is about, casefolded, separated by spaces.
//! Languages without a list live on the weight that BM25 gives to what is rare.

pub(crate) const ENGLISH: &str = "\
    a about above after again against all also am an and any are aren as at be because been \
    before being below between both but by can cannot could couldn did didn do does doesn \
    doing don down during each etc few for from further get gets getting got had hadn has hasn \
    have haven having he her here hers herself hey hi him himself his how i if in into is isn \
    it its itself just know let like ll m me more most mustn my myself no nor not now of off \
    oh ok okay on once only or other our ours ourselves out over own re really s same shan she \
    should shouldn so some such t than that the their theirs them themselves then there these \
    they this those through to too under until up us ve very was wasn we well were weren what \
    when where which while who whom why will with won would wouldn yeah yes you your yours \
    yourself yourselves";

pub(crate) const GERMAN: &str = "\
    aber alle allem allen aller als also am an ander andere auch auf aus bei bin bis bist da \
    damit dann das dass dein deine dem den denn der des dich die dies diese diesem diesen \
    dieser dieses dir doch dort du durch ein eine einem einen einer eines er es euch euer fur \
    hab habe haben hat hatte hatten hier hin ich ihm ihn ihnen ihr ihre ihrem ihren im in ins \
    ist ja jede jeder jetzt kann kein keine konnen machen man mehr mein meine meinem meinen \
    meiner mich mir mit nach nein nicht nichts noch nun nur ob oder ohne sehr sein seine \
    seinen sich sie sind so uber um und uns unser unter vom von vor wann war waren warum was \
    weil wenn wer werden wie wir wird wo zu zum zur";

pub(crate) const FRENCH: &str = "\
    ai aie as au aussi aux avait avec avez avons c ce ces cet cette chez comme d dans de des \
    donc du elle elles en es est et etait ete etes etre eu eux fait il ils j je l la le les \
    leur leurs lui m ma mais me meme mes moi mon n ne nos notre nous on ont ou par pas plus \
    pour pourquoi qu quand que quel quelle qui quoi s sa sans se ses si son sont suis sur t ta \
    te tes toi ton tres tu un une va vos votre vous y";

pub(crate) const SPANISH: &str = "\
    a al algo ante antes aqui asi como con cual cuando de del desde donde dos e el ella ellas \
    ellos en entre era es esa ese eso esta estaba estan estas este esto estos estoy fue ha \
    hace han hasta hay he la las le les lo los mas me mi mis muy nada ni no nos nosotros o os \
    otra otro para pero por porque que quien se ser si sin sobre son soy su sus tambien te \
    tengo tiene todo todos tu tus un una uno unos y ya yo";

pub(crate) const ITALIAN: &str = "\
    a ad agli ai al alla alle anche avere c che chi ci come con cosa cui da dai dal dalla dei \
    del della delle dello di dove e ed era fa gli ha hai hanno ho i il in io l la le lei lo \
    loro lui ma mi mia mio molto ne nei nel nella no noi non o ogni perche per piu quando \
    quella quello questa questo qui se sei si sia siamo sono sta su sua sul sulla suo ti tra \
    tu tua tuo un una uno vi voi";

pub(crate) const PORTUGUESE: &str = "\
    a ao aos as ate com como da das de dela dele do dos e ela elas ele eles em entre era essa \
    esse esta estava este eu foi ha isso isto ja la lhe mais mas me mesmo meu minha muito na \
    nao nas nem no nos nossa nosso num numa o onde os ou para pela pelo por porque qual quando \
    que quem se sem ser seu so sua tambem te tem tenho teu tu tua tudo um uma voce voces";

pub(crate) const DUTCH: &str = "\
    aan al als altijd ben bij dan dat de der deze die dit doch doen door dus een en er ge geen \
    haar had heb hebben heeft hem het hier hij hoe hun ik in is ja je jij jou jouw kan kon \
    maar me meer men met mij mijn na naar niet niets nog nu of om omdat onder ons ook op over \
    te toch toen tot u uit uw van veel voor waar waarom wanneer waren was wat we wel werd wie \
    wij wil worden zal ze zich zij zijn zo zonder zou";

pub(crate) const SWEDISH: &str = "\
    alla att av bara blev bli da dar de dem den denna det detta dig din du efter ej eller en \
    er ett fran for ha hade han hans har hon hur i icke inte jag kan man med men mig min mitt \
    mot mycket nar ni nu nagot och om oss pa sa sig sin som till upp ut vad var vara varfor vi \
    vid vill";

pub(crate) const RUSSIAN: &str = "\
    \u{438} \u{432} \u{432}\u{43e} \u{43d}\u{435} \u{447}\u{442}\u{43e} \u{43e}\u{43d} \
    \u{43d}\u{430} \u{44f} \u{441} \u{441}\u{43e} \u{43a}\u{430}\u{43a} \u{430} \u{442}\u{43e} \
    \u{432}\u{441}\u{435} \u{43e}\u{43d}\u{430} \u{442}\u{430}\u{43a} \u{435}\u{433}\u{43e} \
    \u{43d}\u{43e} \u{434}\u{430} \u{442}\u{44b} \u{43a} \u{443} \u{436}\u{435} \u{432}\u{44b} \
    \u{437}\u{430} \u{431}\u{44b} \u{43f}\u{43e} \u{435}\u{435} \u{43c}\u{43d}\u{435} \
    \u{431}\u{44b}\u{43b}\u{43e} \u{432}\u{43e}\u{442} \u{43e}\u{442} \
    \u{43c}\u{435}\u{43d}\u{44f} \u{435}\u{449}\u{435} \u{43d}\u{435}\u{442} \u{43e} \
    \u{438}\u{437} \u{435}\u{43c}\u{443} \u{43a}\u{43e}\u{433}\u{434}\u{430} \
    \u{434}\u{43b}\u{44f} \u{43c}\u{44b} \u{442}\u{435}\u{431}\u{44f} \u{438}\u{445} \
    \u{447}\u{435}\u{43c} \u{431}\u{44b}\u{43b} \u{433}\u{434}\u{435} \u{44d}\u{442}\u{43e} \
    \u{43a}\u{442}\u{43e} \u{43c}\u{43e}\u{438} \u{43c}\u{43e}\u{44f}";
